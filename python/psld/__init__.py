"""psld: diffusion generative models by the complete recipe (Pandey & Mandt, ICCV 2023), on NumPy arrays.

Recipe      a forward process with exact kernels, for your own training and for the samplers
sample      draws from any score: a Python function, a PyTorch module, an exact mixture
Model       a trained network, or an exact model: sample, guide, inpaint, restore, encode, likelihood
train, Run  training natively, and what a run has written
frechet, kid, inception_score, precision_recall, sliced_wasserstein, evaluate
show        a grid of images for a notebook

docs/reference/python.md is a tour. Errors are subclasses of psld.Error.
"""
from ._errors import ArgumentError, Cancelled, Error, FileError, InputError, NoMemory, NotFinite
from ._library import threads, version
from ._model import Model, measure
from ._options import SampleOptions
from ._recipe import Analysis, Factor, Kernel, Recipe, presets
from ._sample import Mixture, Source, sample
from ._show import Picture, load_image, show, to_pixels

__version__ = version()
