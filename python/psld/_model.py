"""Models: networks, and exact ones, with everything that the commands do with them."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _c
from ._calls import Call, Progress
from ._errors import ArgumentError, InputError
from ._library import Handle, Path, address, array_place, encode, encode_or_none, initial, lend, lib, make, numbers
from ._library import receive, row, take, texts, view_struct
from ._options import SampleOptions, fill, label_numbers, labels_struct, number, seed_number
from ._read import Given, read_data, read_masks, shipped
from ._recipe import Recipe
from ._sample import Source, default_count

if TYPE_CHECKING:
    from typing_extensions import Unpack

Images = NDArray[np.float32]
Label = Union[str, int, Sequence[Union[str, int]], None]
KINDS = {_c.PSLD_EXACT_MODEL: "exact", _c.PSLD_SCORE_MODEL: "score", _c.PSLD_CLASSIFIER: "classifier"}
LATENT = {"sampler": "collapsed", "nfe": 200}  # the default sampler for encoding, which follows the flow


class _Opened:
    """A model of the library, its recipe and the shape of its data."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.pointer = handle.pointer
        recipe = lib.psld_model_recipe(self.pointer)
        self.recipe: Optional[Recipe] = Recipe._copy(recipe) if recipe else None
        sizes = (ctypes.c_size_t * _c.PSLD_MAX_RANK)()
        rank = lib.psld_model_shape(self.pointer, sizes)
        self.shape: Tuple[int, ...] = tuple(sizes[:rank])
        self.dim = math.prod(self.shape)
        self.kind = KINDS[lib.psld_model_kind_of(self.pointer)]
        self.source = lib.psld_model_source(self.pointer)

    @property
    def process(self) -> Recipe:
        if self.recipe is None:
            raise ArgumentError("a classifier without a process has no states")
        return self.recipe


def _overrides(overrides: Any) -> List[str]:
    if overrides is None:
        return []
    if isinstance(overrides, Mapping):
        return [f"{key}={_word(value)}" for key, value in overrides.items()]
    return [overrides] if isinstance(overrides, str) else [str(item) for item in overrides]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if not isinstance(value, (list, tuple)) else str(list(value))


class Model:
    """A model: a network (.safetensors, a PyTorch checkpoint with `config`, the folder of a run), or an exact one
    (.yaml).

    Models that come with psld are found by name: ``psld.Model("digits")``. The keywords are those of the commands:
    `process`, another recipe than the model's own; `config`; `use`, "ema" or "raw" weights; `ema`, which of several
    averages; `isa`, the instruction set ("avx512", "avx2", "neon", "generic"; default: the best of this processor);
    `precision` of products, "fp32", "bf16", or on another device than the CPU "fp16"; `device`, where it is computed
    ("cpu", "gpu", "opencl:0", or "auto": a GPU if there is one; default: cpu; :func:`psld.devices` lists them);
    `reference`, the plain kernels; `overrides` of keys of the configuration.
    `weak` is a weaker model of the same data to be guided by, "none", or as the file says; `weak_scale` its strength.

    Calls from several threads take turns; two models work at once.

    >>> import psld
    >>> model = psld.Model("digits")
    >>> model.shape, model.kind
    ((1, 28, 28), 'score')
    >>> model.sample(n=2, nfe=4).shape
    (2, 1, 28, 28)
    """

    def __init__(
        self,
        path: Path,
        *,
        process: Optional[str] = None,
        config: Optional[Path] = None,
        use: str = "ema",
        ema: Optional[float] = None,
        weak: Optional[Path] = None,
        weak_scale: Optional[float] = None,
        isa: Optional[str] = None,
        precision: Optional[str] = None,
        device: Optional[str] = None,
        reference: bool = False,
        overrides: Any = None,
    ) -> None:
        if use not in ("ema", "raw"):
            raise ArgumentError(f"use: expected ema or raw, found {use!r}")
        self.path: str = shipped(path, "models", ".safetensors")
        self._settings = (process, config, use, ema, isa, precision, device, reference, _overrides(overrides))
        self._weak = (weak, weak_scale)
        self._lock = threading.RLock()
        self._opened: Dict[Any, _Opened] = {}
        self._default = self._open()
        opened = self._default
        #: The shape of one sample of the data.
        self.shape: Tuple[int, ...] = opened.shape
        #: "score", "exact" or "classifier".
        self.kind: str = opened.kind

    def _open(
        self, process: Any = None, weak: Optional[Path] = None, weak_scale: Optional[float] = None, alone: bool = False
    ) -> _Opened:
        """The model with a recipe and autoguidance; `alone`: no guidance unless it is asked for."""
        weak = weak if weak is not None else self._weak[0] if not alone else "none"
        scale = weak_scale if weak_scale is not None else self._weak[1]
        if isinstance(process, Recipe):
            raise ArgumentError('process: expected the text of a recipe, as "psld gamma=0.02", or a file')
        process = process if process is not None else self._settings[0]
        weak = None if weak is None else os.fspath(weak)
        if weak not in (None, "none"):
            weak = shipped(weak, "models", ".safetensors")
        key = (process, weak, scale)
        with self._lock:
            if key not in self._opened:
                self._opened[key] = self._open_as(process, weak, scale)
            return self._opened[key]

    def _open_as(self, process: Optional[str], weak: Optional[str], scale: Optional[float]) -> _Opened:
        _, config, use, ema, isa, precision, device, reference, overrides = self._settings
        options = initial("PSLD_MODEL_DEFAULTS")
        options.process, options.config = encode_or_none(process), encode_or_none(config)
        options.overrides, options.override_count = texts(overrides), len(overrides)
        options.raw, options.reference = int(use == "raw"), int(reference)
        options.isa, options.precision = encode_or_none(isa), encode_or_none(precision)
        options.device = encode_or_none(device)
        options.weak = b"" if weak == "none" else encode_or_none(weak)
        if scale is not None:
            options.weak_scale = number("weak_scale", scale)
        if ema is not None:
            options.ema = number("ema", ema)
        return _Opened(make(lib.psld_model_open, lib.psld_model_free, encode(self.path), ctypes.byref(options)))

    def __repr__(self) -> str:
        name = self._default.recipe.name if self._default.recipe else "no process"
        return f"<psld.Model {self.path}: {self.kind}, {' x '.join(map(str, self.shape))}, {name}>"

    def __reduce__(self) -> Any:
        process, config, use, ema, isa, precision, device, reference, overrides = self._settings
        return _reopen, (
            self.path,
            dict(
                process=process,
                config=config,
                use=use,
                ema=ema,
                weak=self._weak[0],
                weak_scale=self._weak[1],
                isa=isa,
                precision=precision,
                device=device,
                reference=reference,
                overrides=overrides,
            ),
        )

    # ---- What it is ------------------------------------------------------------------------------------------------

    @property
    def recipe(self) -> Recipe:
        """The process of its states."""
        return self._default.process

    @property
    def classes(self) -> Tuple[str, ...]:
        """The names, or numbers, of its classes: of a classifier, or of the labels that a score model takes."""
        pointer, text = self._default.pointer, ctypes.create_string_buffer(256)
        names = []
        for index in range(lib.psld_model_classes(pointer)):
            lib.psld_model_class(pointer, index, text, len(text))
            names.append(text.value.decode())
        return tuple(names)

    @property
    def parameters(self) -> int:
        """Number of weights; 0 for an exact model."""
        return int(lib.psld_model_parameters(self._default.pointer))

    @property
    def predicts(self) -> str:
        """Its output: "eps", "data", "score" or "classes"."""
        text: str = lib.psld_model_predicts(self._default.pointer).decode()
        return text

    @property
    def device(self) -> str:
        """The device of its network: "cpu", "opencl:0"; "" for exact models."""
        text: str = lib.psld_model_device(self._default.pointer).decode()
        return text

    @property
    def isa(self) -> str:
        """The instruction set that its network computes with; "" for an exact model."""
        text: str = lib.psld_model_isa(self._default.pointer).decode()
        return text

    @property
    def precision(self) -> str:
        """The precision of its network's products, "fp32" or "bf16"; "" for an exact model."""
        text: str = lib.psld_model_precision(self._default.pointer).decode()
        return text

    @property
    def cfg(self) -> float:
        """Classifier-free guidance that it uses by default."""
        return float(lib.psld_model_cfg(self._default.pointer))

    @property
    def source(self) -> Source:
        """Its score without labels, with guidance by its weak model, if any: eps of states and times, in float64."""
        return self._source(self._default)

    def _source(self, opened: _Opened) -> Source:
        if not opened.source:
            raise ArgumentError(f"{self.path}: a classifier has no samples")
        return Source(opened.process, opened.shape, _borrowed(opened.source, self), self._lock)

    def save(self, path: Path) -> None:
        """Writes the weights with their configuration: .safetensors, or .pt, .pth, .ckpt for PyTorch."""
        with self._lock:
            lib.psld_model_save(self._default.pointer, encode(path))

    # ---- Labels ----------------------------------------------------------------------------------------------------

    def _label(self, opened: _Opened, label: Any) -> int:
        found = ctypes.c_size_t()
        lib.psld_model_label(opened.pointer, str(label).encode(), ctypes.byref(found))
        return found.value

    def _label_list(self, opened: _Opened, label: Any) -> List[int]:
        """The class numbers of "cat", 3, "cat,dog", "all", "none", or a list of such."""
        if isinstance(label, (list, tuple, np.ndarray)):
            return [one for item in label for one in self._label_list(opened, item)]
        try:
            return [self._label(opened, label)]
        except (ArgumentError, InputError):
            if isinstance(label, str) and "," in label:
                return [one for word in label.split(",") for one in self._label_list(opened, word)]
            if label == "all":
                return list(range(lib.psld_model_classes(opened.pointer)))
            if label == "none":
                return [-1]
            raise

    def _labels(
        self, opened: _Opened, label: Any, labels: Any, cfg: Optional[float], cfg_range: Any, first: int = 0
    ) -> Any:
        """psld_labels from these arguments, as in the commands; None: no labels are given."""
        if label is None and labels is None and cfg is None and cfg_range is None:
            return None
        if label is not None and labels is not None:
            raise ArgumentError("label and labels both choose classes; give one of them")
        classes = lib.psld_model_classes(opened.pointer)
        if not classes or opened.kind == "classifier":
            name = (
                "label"
                if label is not None
                else "labels" if labels is not None else "cfg" if cfg is not None else "cfg_range"
            )
            raise ArgumentError(f"{name}: {self.path} has no classes, so it takes no labels")
        chosen = self._label_list(opened, label) if label is not None else None
        if labels is not None:
            chosen = label_numbers(labels, classes)
        return labels_struct(chosen, cfg, cfg_range, first)

    # ---- Sampling --------------------------------------------------------------------------------------------------

    def sample(
        self,
        n: Optional[int] = None,
        *,
        label: Label = None,
        labels: Optional[ArrayLike] = None,
        cfg: Optional[float] = None,
        cfg_range: Optional[Sequence[float]] = None,
        start: str = "prior",
        z0: Any = None,
        timesteps: Optional[ArrayLike] = None,
        state: bool = False,
        first: int = 0,
        process: Optional[str] = None,
        weak: Optional[Path] = None,
        weak_scale: Optional[float] = None,
        **options: Unpack[SampleOptions],
    ) -> Images:
        """Draws samples, as ``psld sample``: float32 [n, channels, ...] (64 images or 1000 points unless n is given).

        `label` is a class by name or number, several of them in turn, "all" or "none"; `labels` [n] has that of each
        sample. `cfg` is classifier-free guidance, in `cfg_range` of the effective noise alone. `start` "exact" begins
        with the exact law at t = 1 of an exact model; `z0` [n, k * channels, ...] with these states, as of
        :meth:`encode`; `timesteps` are those of a network of discrete ones. `state` asks for whole states. Samples
        first ... first + n - 1 of the seed are drawn. The other keywords: :class:`psld.SampleOptions`.
        """
        if start not in ("prior", "exact"):
            raise ArgumentError(f"start: expected prior or exact, found {start!r}")
        if start == "exact" and (label is not None or labels is not None):
            raise ArgumentError("start: exact draws from the whole mixture; give no label with it")
        if start == "exact" and z0 is not None:
            raise ArgumentError("start and z0 both choose the initial states; give one of them")
        if z0 is not None:
            weak = "none" if weak is None and self._weak[0] is None else weak
            options = _follow_the_flow(options)
        opened = self._open(process, weak, weak_scale)
        if not opened.source:
            raise ArgumentError(f"{self.path}: a classifier has no samples")
        if timesteps is not None and process is None and self._settings[0] is None:
            opened = self._open(self._reaching_process(opened), weak, weak_scale)
        if timesteps is not None:
            options = self._timestep_grid(opened, timesteps, z0, options)
        if n is None:
            n = len(np.ravel(labels)) if labels is not None else len(z0) if z0 is not None else None
        count = number("n", default_count(opened.shape) if n is None else n, int, False)
        o = fill(options, opened.process._pointer, "sample", opened.pointer)
        struct = self._labels(opened, label, labels, cfg, cfg_range, first)
        if struct is not None:
            o.labels = ctypes.pointer(struct)
        states = self._initial_states(opened, start, z0, count, o.seed)
        return self._run(
            opened,
            options.get("progress"),
            o,
            lib.psld_model_sample,
            first,
            count,
            None if states is None else lend(states[:count]),
            int(state),
        )

    @staticmethod
    def _reaching_process(opened: _Opened) -> Optional[str]:
        """A vp recipe that reaches all noise levels of a network's timesteps; None if its own recipe does."""
        least, most = ctypes.c_double(), ctypes.c_double()
        if not lib.psld_model_timesteps(opened.pointer):
            return None
        lib.psld_model_sigma_range(opened.pointer, ctypes.byref(least), ctypes.byref(most))
        if float(opened.process.sigma(1.0)) >= most.value:
            return None
        return f"vp beta=[0.1,{2 * math.log1p(most.value**2) - 0.0999!r}]"

    def _timestep_grid(self, opened: _Opened, timesteps: ArrayLike, z0: Any, options: Any) -> Any:
        if z0 is None or options.get("grid") is not None or options.get("end_sigma") is not None:
            raise ArgumentError("timesteps needs z0, the states at the first of them, and no other times")
        steps = numbers(timesteps, "timesteps").ravel().tolist()
        if len(steps) < 2 or any(b >= a for a, b in zip(steps, steps[1:])):
            raise ArgumentError("timesteps: expected at least two, decreasing")
        times, t = [], ctypes.c_double()
        for step in steps:
            lib.psld_model_timestep_time(opened.pointer, step, ctypes.byref(t))
            times.append(t.value)
        return {**options, "grid": times, "nfe": None, "eps": None}

    def _initial_states(self, opened: _Opened, start: str, z0: Any, count: int, seed: int) -> Any:
        width = opened.process.k * opened.dim
        if start == "exact":
            mixture = lib.psld_model_mixture(opened.pointer)
            if not mixture:
                raise ArgumentError("start: exact needs an exact model: p_1 of a network is not known")
            states = np.empty((count, width))
            lib.psld_mixture_draw(mixture, opened.process._pointer, 1, seed, 0, count, address(states))
            return states
        if z0 is None:
            return None
        states = _arrays.to_numpy(z0, "z0")
        if states.ndim < 2 or states.size != len(states) * width or len(states) < count:
            raise ArgumentError(
                f"z0: expected {count} states [n, ...] of {width} numbers each, found the shape " f"{states.shape}"
            )
        if not np.isfinite(states).all():
            raise ArgumentError("z0: a state is not finite")
        return np.ascontiguousarray(states, np.float64)

    def _run(self, opened: _Opened, progress: Progress, o: Any, function: Any, *arguments: Any) -> Images:
        """A call whose last but one parameter receives an array."""
        call, found = Call(progress), array_place()
        o.progress, o.progress_user = call.progress, call.key
        with self._lock:
            call.run(function, opened.pointer, ctypes.byref(o), *arguments, ctypes.byref(found), None)
        return receive(found)

    def _draw(
        self, opened: _Opened, source: Any, o: Any, progress: Progress, first: int, count: int, state: bool
    ) -> Images:
        """Samples of a source made of this model."""
        call, k = Call(progress), opened.process.k
        z = np.empty((count, k * opened.shape[0], *opened.shape[1:]))
        o.progress, o.progress_user = call.progress, call.key
        if o.batch < 1:
            o.batch = lib.psld_model_batch(opened.pointer)
        with self._lock:
            call.run(
                lib.psld_sample,
                opened.process._pointer,
                source,
                ctypes.byref(o),
                first,
                count,
                opened.dim,
                None,
                address(z),
                None,
            )
        return (z if state else z[:, : opened.shape[0]]).astype(np.float32)

    def trajectory(
        self,
        n: int = 8,
        frames: int = 12,
        *,
        process: Optional[str] = None,
        weak: Optional[Path] = None,
        weak_scale: Optional[float] = None,
        **options: Unpack[SampleOptions],
    ) -> Images:
        """The clean data that the model predicts along the trajectories of the first n samples:
        float32 [n, frames, channels, ...]."""
        opened = self._open(process, weak, weak_scale)
        o = fill(options, opened.process._pointer, "trajectory", opened.pointer)
        count = number("n", n, int, False)
        path = make(
            lib.psld_trajectory_create,
            lib.psld_trajectory_free,
            opened.pointer,
            0,
            count,
            number("frames", frames, int, False),
        )
        lib.psld_trajectory_watch(path.pointer, ctypes.byref(o))
        self._run(opened, options.get("progress"), o, lib.psld_model_sample, 0, count, None, 0)
        return view_struct(lib.psld_trajectory_frames(path.pointer).contents)

    # ---- Under conditions ------------------------------------------------------------------------------------------

    def guide(
        self,
        label: Label = "all",
        n: Optional[int] = None,
        *,
        classifier: Union["Model", Path, None] = None,
        classifier_config: Optional[Path] = None,
        scale: Optional[float] = None,
        state: bool = False,
        process: Optional[str] = None,
        weak: Optional[Path] = None,
        weak_scale: Optional[float] = None,
        **options: Unpack[SampleOptions],
    ) -> Images:
        """Samples of classes by the gradient of a classifier, as ``psld guide``: [classes * n, ...], class by class.

        `label` is a class by name or number, several, or "all"; n samples of each are drawn (8 images, 1000 points). An
        exact model needs no `classifier`. `scale` multiplies the gradient (3, of exact models 1: Bayes' rule).
        """
        opened = self._open(process, weak, weak_scale, alone=True)
        o = fill(options, opened.process._pointer, "guide", opened.pointer)
        judge = self._classifier(opened, classifier, classifier_config)
        if judge is None:
            raise InputError(f"{self.path}: has no classes of its own; give a classifier")
        count = number("n", (8 if default_count(opened.shape) == 64 else 1000) if n is None else n, int, False)
        if isinstance(label, str) and label == "all":
            chosen = list(range(lib.psld_classifier_classes(lib.psld_model_classifier(judge.pointer))))
        else:
            chosen = [self._label(judge, one) for one in (label if isinstance(label, (list, tuple)) else [label])]
        parts = []
        for number_of_class in chosen:
            guided = self._guided(opened, opened.source, judge, number_of_class, scale)
            parts.append(
                self._draw(opened, guided.pointer, o, options.get("progress"), number_of_class << 32, count, state)
            )
        return np.concatenate(parts)

    def _classifier(self, opened: _Opened, classifier: Any, config: Optional[Path]) -> Optional[_Opened]:
        """The given classifier, or that of the model; None: it has none."""
        if classifier is None:
            return opened if lib.psld_model_classifier(opened.pointer) else None
        model = classifier if isinstance(classifier, Model) else Model(classifier, config=config)
        judge = model._default
        if not lib.psld_model_classifier(judge.pointer):
            raise InputError(f"{model.path}: is no classifier")
        size = judge.dim
        if judge.recipe is None:
            size //= opened.process.k
        elif judge.recipe != opened.process:
            raise InputError(
                f"{model.path}: is a classifier for recipe {judge.recipe.name}, the model has "
                f"{opened.process.name}: {judge.recipe.difference(opened.process)}"
            )
        if size != opened.dim:
            raise InputError(f"{model.path}: classifies data of {size} numbers, the model's have {opened.dim}")
        judge.handle.keep = model
        return judge

    def _guided(self, opened: _Opened, base: Any, judge: _Opened, label: int, scale: Optional[float]) -> Handle:
        strength = scale if scale is not None and scale > 0 else 1 if opened.kind == "exact" else 3
        return make(
            lib.psld_source_guide,
            lib.psld_source_free,
            base,
            opened.process._pointer,
            lib.psld_model_classifier(judge.pointer),
            label,
            strength,
            keep=judge,
        )

    def _conditions(
        self, opened: _Opened, label: Any, cfg: Optional[float], cfg_range: Any, classifier: Any, config: Optional[Path]
    ) -> Tuple[List[Handle], Any, Optional[_Opened], Any]:
        """For restorations: sources to keep, the one to start from, and a classifier with its label."""
        if classifier is not None and label is None:
            raise ArgumentError("classifier needs label")
        if (cfg is not None or cfg_range is not None) and label is None:
            raise ArgumentError("cfg and cfg_range need label")
        if label is None:
            return [], opened.source, None, None
        own = not lib.psld_model_classes(opened.pointer) and lib.psld_model_classifier(opened.pointer)
        if classifier is not None or own:
            return [], opened.source, self._classifier(opened, classifier, config), label
        struct = self._labels(opened, label, None, cfg, cfg_range)
        if struct.cfg == _c.PSLD_UNSET:
            struct.cfg = lib.psld_model_cfg(opened.pointer)
        labelled = make(
            lib.psld_source_label, lib.psld_source_free, opened.source, opened.process._pointer, ctypes.byref(struct)
        )
        return [labelled], labelled.pointer, None, None

    def inpaint(
        self,
        image: Given,
        *,
        mask: Any = None,
        rect: Optional[Sequence[int]] = None,
        n: Optional[int] = None,
        method: Optional[str] = None,
        repeats: Optional[int] = None,
        jump: Optional[int] = None,
        fit: bool = False,
        label: Label = None,
        cfg: Optional[float] = None,
        cfg_range: Optional[Sequence[float]] = None,
        classifier: Union["Model", Path, None] = None,
        classifier_config: Optional[Path] = None,
        scale: Optional[float] = None,
        state: bool = False,
        process: Optional[str] = None,
        weak: Optional[Path] = None,
        weak_scale: Optional[float] = None,
        **options: Unpack[SampleOptions],
    ) -> Images:
        """Fills in the unknown part of images or vectors, as ``psld inpaint``: [images * n, ...], image by image.

        `image` is data [channels, ...] or [images, channels, ...], pixels (uint8), or a file of them. Unknown are
        elements above 0 in `mask` [height, width] (or a file), or the rectangle `rect` (x, y, width, height).
        `method` is "resample", which repeats every `jump` (1) steps `repeats` (10) times, "replace" or "authors".
        """
        opened = self._open(process, weak, weak_scale, alone=True)
        o = fill(options, opened.process._pointer, "inpaint", opened.pointer)
        x = read_data(image, opened.shape, "image", fit)
        known = read_masks(mask, rect, opened.shape, len(x), fit)
        each = number("n", (4 if default_count(opened.shape) == 64 else 1000) if n is None else n, int, False)
        adaptive = bool(o.sampler) and row("sampler", o.sampler.decode()).adaptive
        method = method or ("replace" if adaptive else "resample")
        if method not in ("resample", "replace", "authors"):
            raise ArgumentError(f"method: expected resample, replace or authors, found {method!r}")
        if method != "resample" and (repeats is not None or jump is not None):
            raise ArgumentError("repeats and jump are for the method resample")
        p = initial("PSLD_INPAINTING_DEFAULTS")
        p.images, p.each, p.x, p.known, p.lagging = len(x), each, address(x), address(known), int(method == "authors")
        if method == "resample":
            p.repeats = number("repeats", 10 if repeats is None else repeats, int, False)
            p.jump = number("jump", 1 if jump is None else jump, int, False)
        o.inpainting = ctypes.pointer(p)
        keep, source, judge, chosen = self._conditions(opened, label, cfg, cfg_range, classifier, classifier_config)
        if judge is not None:
            keep.append(self._guided(opened, source, judge, self._label(judge, chosen), scale))
            source = keep[-1].pointer
        return self._draw(opened, source, o, options.get("progress"), 0, len(x) * each, state)

    def restore(
        self,
        task: str,
        image: Given,
        *,
        degraded: bool = False,
        factor: Optional[int] = None,
        blur: Optional[float] = None,
        mask: Any = None,
        rect: Optional[Sequence[int]] = None,
        matrix: Any = None,
        noise: float = 0,
        method: Optional[str] = None,
        strength: float = 1,
        iterations: Optional[int] = None,
        n: Optional[int] = None,
        fit: bool = False,
        label: Label = None,
        cfg: Optional[float] = None,
        cfg_range: Optional[Sequence[float]] = None,
        classifier: Union["Model", Path, None] = None,
        classifier_config: Optional[Path] = None,
        scale: Optional[float] = None,
        state: bool = False,
        process: Optional[str] = None,
        weak: Optional[Path] = None,
        weak_scale: Optional[float] = None,
        **options: Unpack[SampleOptions],
    ) -> Images:
        """Samples p(x | y) for measurements y = A x + noise, as ``psld restore``: [images * n, ...], image by image.

        `task` is super-resolution (blocks of `factor` pixels, 4), deblur (deviation `blur`, 2), colorize, denoise,
        inpaint (`mask` or `rect`) or linear (`matrix` [rows, dim]). `image` is measured first, with noise of deviation
        `noise`; with `degraded` it is the measurement itself. `method` is posterior, isotropic, reconstruction or
        diffused; `strength` scales the gradient of the measurement, and `iterations` (8) bounds the work of posterior.
        """
        opened = self._open(process, weak, weak_scale, alone=True)
        o = fill(options, opened.process._pointer, "restore", opened.pointer)
        job = Restoration(task, opened.shape, factor=factor, blur=blur, matrix=matrix, mask=mask, rect=rect)
        is_measured = degraded and not job.picked
        given = read_data(image, job.shape if is_measured else opened.shape, "image", fit and not is_measured)
        images = len(given)
        job.mask(images, fit)
        how = initial("PSLD_RESTORE_DEFAULTS")
        how.method = encode_or_none(method)
        how.noise, how.scale = number("noise", noise), number("strength", strength)
        if iterations is not None:
            how.iterations = number("iterations", iterations, int, False)
        each = number("n", (4 if default_count(opened.shape) == 64 else 1000) if n is None else n, int, False)
        keep, base, judge, chosen = self._conditions(opened, label, cfg, cfg_range, classifier, classifier_config)
        parts = []
        for i in range(images):
            measured = given[i] if is_measured else job.measure(given[i], 0 if degraded else how.noise, o.seed, i)
            restored = make(
                lib.psld_source_restore,
                lib.psld_source_free,
                base,
                opened.process._pointer,
                job.operator(i).pointer,
                address(measured),
                ctypes.byref(how),
                keep=(keep, job),
            )
            source = restored.pointer
            if judge is not None:
                guided = self._guided(opened, source, judge, self._label(judge, chosen), scale)
                source = guided.pointer
            parts.append(self._draw(opened, source, o, options.get("progress"), i * each, each, state))
        return np.concatenate(parts)

    # ---- Data to noise, and back -----------------------------------------------------------------------------------

    def encode(
        self,
        x: Given,
        *,
        label: Label = None,
        labels: Optional[ArrayLike] = None,
        cfg: Optional[float] = None,
        cfg_range: Optional[Sequence[float]] = None,
        fit: bool = False,
        process: Optional[str] = None,
        weak: Optional[Path] = None,
        weak_scale: Optional[float] = None,
        **options: Unpack[SampleOptions],
    ) -> Images:
        """States at t = 1 from which the flow returns to the data, as ``psld encode``: float32 [n, k * channels, ...].

        The sampler is "collapsed" with 200 evaluations unless another deterministic one is given;
        ``sample(z0=...)`` with the same options goes back.
        """
        opened = self._open(process, weak, weak_scale, alone=True)
        o = fill(_follow_the_flow(options), opened.process._pointer, "encode")
        data = read_data(x, opened.shape, "x", fit).astype(np.float32)
        if (cfg is not None or cfg_range is not None) and label is None and labels is None:
            raise ArgumentError("cfg: give label, too: data are encoded without label by default")
        struct = self._labels(opened, label, labels, cfg, cfg_range)
        if struct is not None:
            o.labels = ctypes.pointer(struct)
        return self._run(opened, options.get("progress"), o, lib.psld_model_encode, 0, lend(data))

    def interpolate(
        self,
        a: Given,
        b: Given,
        n: int = 9,
        *,
        fit: bool = False,
        process: Optional[str] = None,
        label: Label = None,
        cfg: Optional[float] = None,
        cfg_range: Optional[Sequence[float]] = None,
        **options: Unpack[SampleOptions],
    ) -> Images:
        """Images or points between two others, both ends included, as ``psld interpolate``: [n, channels, ...]."""
        ends = np.concatenate([read_data(a, self.shape, "a", fit), read_data(b, self.shape, "b", fit)])
        if len(ends) != 2:
            raise ArgumentError(
                f"interpolate: expected one image or point in each of a and b, found {len(ends)} in all"
            )
        count = number("n", n, int, False)
        if count < 2:
            raise ArgumentError(f"n: expected at least 2, found {n}")
        given: Any = dict(process=process, label=label, cfg=cfg, cfg_range=cfg_range)
        left, right = self.encode(ends, **given, **options)
        return self.sample(count, z0=_arc(left, right, count), **given, **options)

    # ---- Evaluations -----------------------------------------------------------------------------------------------

    def denoise(self, x: Given, sigma: ArrayLike, label: Optional[ArrayLike] = None) -> Images:
        """The clean data that it predicts from x = x_0 + sigma n, E[x_0 | x]: float32 [n, channels, ...].

        `sigma` is one number, or one for each; `label` [n] are classes, -1 for none.
        """
        data = read_data(x, self.shape, "x")
        n = len(data)
        given = (
            None if label is None else lend(np.ascontiguousarray(np.broadcast_to(np.asarray(label, np.int32), (n,))))
        )
        levels = np.ascontiguousarray(np.broadcast_to(numbers(sigma, "sigma"), (n,)))
        with self._lock:
            return take(lib.psld_model_denoise, self._default.pointer, lend(data), lend(levels), given)

    def classify(self, z: Any, t: ArrayLike) -> Images:
        """Logits of a classifier for states z at times t: float32 [n, classes]."""
        if self.kind != "classifier":
            raise ArgumentError(f"{self.path}: is no classifier")
        states = np.ascontiguousarray(_arrays.to_numpy(z, "z"))
        times = np.ascontiguousarray(np.broadcast_to(numbers(t, "t"), (len(states),)))
        with self._lock:
            return take(
                lib.psld_model_evaluate, self._default.pointer, lend(states), lend(times), None, None, after=(None,)
            )

    def likelihood(
        self,
        x: Given,
        *,
        divergence: str = "auto",
        probes: Optional[int] = None,
        tol: Optional[float] = None,
        eps: Optional[float] = None,
        seed: int = 0,
        batch: Optional[int] = None,
        ode_group: Optional[int] = None,
        process: Optional[str] = None,
        progress: Progress = None,
    ) -> NDArray[np.float64]:
        """log p(x) in nats of each sample, by the probability flow of the model itself.

        With auxiliary variables it is an estimate whose mean is a lower bound. `divergence` is exact, hutchinson (with
        `probes` directions) or auto: exact if it is cheap.
        """
        if divergence not in ("auto", "exact", "hutchinson"):
            raise ArgumentError(f"divergence: expected auto, exact or hutchinson, found {divergence!r}")
        opened = self._open(process, alone=True)
        data = read_data(x, opened.shape, "x")
        o = initial("PSLD_LIKELIHOOD_DEFAULTS")
        for field, value, kind in (
            ("probes", probes, int),
            ("tolerance", tol, float),
            ("eps", eps, float),
            ("batch", batch, int),
            ("ode_group", ode_group, int),
        ):
            if value is not None:
                setattr(o, field, number("tol" if field == "tolerance" else field, value, kind, False))
        if divergence != "auto":
            o.exact = int(divergence == "exact")
        o.seed = seed_number(seed)
        call, log_p = Call(progress), np.empty(len(data))
        o.progress, o.progress_user = call.progress, call.key
        with self._lock:
            call.run(
                lib.psld_likelihood,
                opened.process._pointer,
                opened.source,
                ctypes.byref(o),
                0,
                len(data),
                opened.dim,
                address(data),
                address(log_p),
                None,
            )
        return log_p


class Restoration:
    """A task of restoration on data of a shape: measurements of it, and one operator for each image."""

    def __init__(
        self,
        task: str,
        shape: Tuple[int, ...],
        *,
        factor: Optional[int],
        blur: Optional[float],
        matrix: Any,
        mask: Any,
        rect: Any,
    ) -> None:
        info = row("task", task)
        self.picked = bool(info.uses_known)
        if not self.picked and (mask is not None or rect is not None):
            raise ArgumentError("mask and rect are for the task inpaint")
        if bool(info.uses_matrix) != (matrix is not None):
            raise ArgumentError(f"matrix: {'is needed by' if info.uses_matrix else 'is not for'} the task {task}")
        self._data, self._given = shape, (mask, rect)
        self._known: Optional[NDArray[np.uint8]] = None
        self._last: Tuple[int, Optional[Handle]] = (-1, None)  # the last operator, and its image
        t = self._task = initial("PSLD_TASK_DEFAULTS")
        t.name, t.rank = encode(task), len(shape)
        for i, size in enumerate(shape):
            t.shape[i] = size
        if factor is not None:
            t.factor = number("factor", factor, int, False)
        if blur is not None:
            t.blur = number("blur", blur, float, False)
        if matrix is not None:
            a = numbers(matrix, "matrix")
            if a.ndim != 2 or a.shape[1] != math.prod(shape):
                raise ArgumentError(f"matrix: expected [rows, {math.prod(shape)}], found the shape {a.shape}")
            t.matrix, t.rows, t.keep = address(a), len(a), a

    def mask(self, images: int, fit: bool) -> None:
        if self.picked:
            self._known = read_masks(*self._given, self._data, images, fit)

    def operator(self, image: int) -> Handle:
        at = image if self._known is not None else 0
        number_of_last, operator = self._last
        if operator is None or number_of_last != at:
            if self._known is not None:
                self._task.known = address(self._known[at])
            operator = make(lib.psld_operator_create, lib.psld_operator_free, ctypes.byref(self._task))
            self._last = (at, operator)
        return operator

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._shape_of(self.operator(0))

    @staticmethod
    def _shape_of(operator: Handle) -> Tuple[int, ...]:
        sizes = (ctypes.c_size_t * _c.PSLD_MAX_RANK)()
        rank = lib.psld_operator_shape(operator.pointer, sizes)
        return tuple(sizes[:rank])

    def measure(self, x: NDArray[np.float64], noise: float, seed: int, image: int) -> NDArray[np.float64]:
        operator = self.operator(image)
        y = np.empty(self._shape_of(operator))
        lib.psld_operator_measure(operator.pointer, address(x), noise, seed, image, address(y))
        return y

    def show(self, y: NDArray[np.float64], image: int) -> NDArray[np.float64]:
        """A picture of a measurement in the shape of the data."""
        x = np.empty(self._data)
        lib.psld_operator_show(self.operator(image).pointer, address(y), address(x))
        return x


def measure(
    task: str,
    image: Any,
    *,
    factor: Optional[int] = None,
    blur: Optional[float] = None,
    mask: Any = None,
    rect: Optional[Sequence[int]] = None,
    matrix: Any = None,
    noise: float = 0,
    seed: int = 0,
    shown: bool = False,
) -> NDArray[np.float64]:
    """Measurements y = A x + noise of images [n, channels, ...], as :meth:`Model.restore` makes them.

    With `shown` they are pictures in the shape of the images: small ones enlarged, unknown pixels grey.

    >>> import numpy, psld
    >>> psld.measure("super-resolution", numpy.zeros((2, 1, 8, 8)), factor=4).shape
    (2, 1, 2, 2)
    """
    array = _arrays.to_numpy(image, "image")
    x = read_data(array, array.shape[1:], "image")
    job = Restoration(task, x.shape[1:], factor=factor, blur=blur, matrix=matrix, mask=mask, rect=rect)
    job.mask(len(x), False)
    found = [job.measure(one, number("noise", noise), seed_number(seed), i) for i, one in enumerate(x)]
    return np.stack([job.show(y, i) for i, y in enumerate(found)] if shown else found)


def _follow_the_flow(options: SampleOptions) -> SampleOptions:
    """The default for given states: a sampler with noise would lose what they contain."""
    if options.get("sampler") is not None or options.get("quality") is not None:
        return options
    followed: Any = {**options, "sampler": LATENT["sampler"]}
    grid = options.get("grid")
    listed = grid is not None and (not isinstance(grid, str) or "," in grid)
    if options.get("nfe") is None and not listed:
        followed["nfe"] = LATENT["nfe"]
    return followed  # type: ignore[no-any-return]


def _arc(a: Images, b: Images, n: int) -> Images:
    """States on the arc between a and b, which are as typical of noise as a and b."""
    left, right = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    angle = math.acos(max(-1.0, min(1.0, float(left @ right) / math.sqrt(float(left @ left) * float(right @ right)))))
    part = np.arange(n) / (n - 1)
    weights = np.stack([1 - part, part], 1)
    if angle > 1e-6 and math.sin(angle) > 1e-6:
        weights = np.sin(weights * angle) / math.sin(angle)
    between = weights[:, :1] * left + weights[:, 1:] * right
    return between.astype(np.float32).reshape(n, *a.shape)


def _borrowed(pointer: int, owner: Any) -> Handle:
    return Handle(ctypes.c_void_p(pointer), lambda _: None, owner)


def _reopen(path: str, settings: Dict[str, Any]) -> Model:
    return Model(path, **settings)
