"""psld: diffusion generative models by the complete recipe (Pandey & Mandt, ICCV 2023), on NumPy arrays.

Recipe      a forward process with exact kernels, for your own training and for the samplers
sample      draws from any score: a Python function, a PyTorch module, an exact mixture
Model       a trained network, or an exact model: sample, guide, inpaint, restore, encode, likelihood
train, Run  training natively, and what a run has written; tune: a model for few evaluations
evaluate    distances between sets of samples; of arrays also frechet, kid, inception_score, precision_recall,
            sliced_wasserstein
show        a grid of images for a notebook

docs/reference/python.md is a tour. Errors are subclasses of psld.Error.
"""

from ._errors import ArgumentError, Cancelled, DeviceFailed, Error, FileError, InputError, NoMemory, NotFinite
from ._evaluate import Comparison, Features, Likelihood, evaluate, frechet, inception_score, kid, nll
from ._evaluate import precision_recall, sliced_wasserstein
from ._library import devices, threads, version
from ._model import Model, measure
from ._options import SampleOptions
from ._recipe import Analysis, Factor, Kernel, Recipe, presets
from ._sample import Mixture, Source, sample
from ._show import Picture, load_image, plot_curves, plot_points, show, to_pixels
from ._train import Run, Step, Training, train, tune

__version__ = version()
__all__ = [
    "Analysis",
    "ArgumentError",
    "Cancelled",
    "Comparison",
    "DeviceFailed",
    "Error",
    "Factor",
    "Features",
    "FileError",
    "InputError",
    "Kernel",
    "Likelihood",
    "Mixture",
    "Model",
    "NoMemory",
    "NotFinite",
    "Picture",
    "Recipe",
    "Run",
    "SampleOptions",
    "Source",
    "Step",
    "Training",
    "devices",
    "evaluate",
    "frechet",
    "inception_score",
    "kid",
    "load_image",
    "measure",
    "nll",
    "plot_curves",
    "plot_points",
    "precision_recall",
    "presets",
    "sample",
    "show",
    "sliced_wasserstein",
    "threads",
    "to_pixels",
    "train",
    "tune",
    "version",
]
