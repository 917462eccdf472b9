"""The options of sampling, with the names and defaults of the commands."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _c
from ._calls import Progress
from ._errors import ArgumentError
from ._library import encode, initial, lib, numbers, row

if TYPE_CHECKING:
    from typing_extensions import TypedDict
else:
    try:
        from typing import TypedDict
    except ImportError:  # pragma: no cover
        TypedDict = dict


class SampleOptions(TypedDict, total=False):
    """Keywords of everything that samples. They have the names of the commands' options; None leaves a choice open.

    sampler: em, sscs, ode, euler-ode, heun, dpm, collapsed, collapsed-heun, ipndm, ancestral,
    consistency.
    quality: draft, normal (the default) or best: chooses the sampler, and grid, nfe and eta where they are not given.
    nfe: evaluations of the score per sample, the last denoising step included.
    grid: where the steps lie: uniform, quadratic, sqrt, log, rho, inverse; or falling times from 1 on. rho is of that grid.
    order: of dpm, collapsed and ancestral. detail: for these, the scale below which noise no longer changes clean data.
    eta: the noise of ancestral, from 0 to 1.
    tol: tolerance of ode, relative and absolute. ode_group: samples that share its steps (16).
    seed: sample i of a seed is always the same.
    no_denoise: no denoising step at the end.
    eps: end time (1e-3). end_sigma: end where the effective noise is this, instead.
    clip: clip predicted clean data to [-clip, clip]. threshold: scale by this quantile instead.
    corrector: Langevin steps after each step. corrector_size: their size, in (0, 1].
    batch: samples at a time; results do not depend on it.
    progress: True for a bar (tqdm, if it is there), or a function of (done, total), which cancels by a true result.
    """

    sampler: Optional[str]
    quality: Optional[str]
    order: Optional[int]
    detail: Optional[float]
    eta: Optional[float]
    grid: Union[str, Sequence[float], None]
    rho: Optional[float]
    nfe: Optional[int]
    tol: Optional[float]
    seed: int
    no_denoise: bool
    eps: Optional[float]
    end_sigma: Optional[float]
    clip: Optional[float]
    threshold: Optional[float]
    corrector: Optional[int]
    corrector_size: Optional[float]
    batch: Optional[int]
    ode_group: Optional[int]
    progress: Progress


# Python's name, the field of psld_sample_options, its type, and whether 0 means something.
_NUMBERS = (
    ("order", "order", int, False),
    ("detail", "detail", float, True),
    ("eta", "eta", float, True),
    ("rho", "rho", float, False),
    ("nfe", "nfe", int, False),
    ("tol", "tolerance", float, False),
    ("eps", "eps", float, False),
    ("end_sigma", "end_sigma", float, False),
    ("clip", "clip", float, False),
    ("threshold", "threshold", float, False),
    ("corrector", "corrector", int, True),
    ("corrector_size", "corrector_size", float, False),
    ("batch", "batch", int, False),
    ("ode_group", "ode_group", int, False),
)
NAMES = frozenset(("sampler", "quality", "grid", "seed", "no_denoise", "progress", *(name for name, *_ in _NUMBERS)))


def check_names(options: Any, function: str, known: "frozenset[str]" = NAMES) -> None:
    """Refuses unknown keywords, as Python does."""
    for name in options:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, 1)
            raise TypeError(f"{function}() has no argument {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def number(name: str, value: Any, kind: Any = float, zero: bool = True) -> Any:
    """A number of an option, as the library takes it. -1 would mean that it is not given."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"{name}: expected a number, found {value!r}")
    if not math.isfinite(value) or (kind is int and value != int(value)):
        raise ArgumentError(f"{name}: expected a {'whole' if kind is int else 'finite'} number, found {value!r}")
    if value < 0 or (value == 0 and not zero):
        raise ArgumentError(f"{name}: expected a number {'from' if zero else 'above'} 0, found {value!r}")
    if kind is int and value > 2**31 - 1:
        raise ArgumentError(f"{name}: expected less than 2^31, found {value!r}")
    return kind(value)


def seed_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**64:
        raise ArgumentError(f"seed: expected a whole number from 0 to 2^64 - 1, found {value!r}")
    return int(value)


def _check_uses(options: SampleOptions) -> None:
    """Refuses options that the sampler does not use: they would have no effect."""
    sampler, quality = options.get("sampler"), options.get("quality")
    if sampler is not None and quality is not None:
        raise ArgumentError("quality chooses the sampler: give one of quality and sampler")
    name = sampler if sampler is not None else row("quality", quality or "normal").sampler.decode()
    info = row("sampler", name)
    if info.adaptive and options.get("nfe") is not None:
        raise ArgumentError(f"nfe: {name} chooses its steps itself; give tol")
    if not info.uses_tolerance and options.get("tol") is not None:
        raise ArgumentError(f"tol: {name} does not use it; it takes nfe")
    if not info.uses_eta and options.get("eta") is not None:
        raise ArgumentError(f"eta: {name} does not use it")
    if options.get("eps") is not None and options.get("end_sigma") is not None:
        raise ArgumentError("eps and end_sigma both choose the end of sampling; give one of them")


def grid_text(grid: Union[str, Sequence[float], None]) -> Optional[bytes]:
    if grid is None or isinstance(grid, str):
        return None if grid is None else encode(grid)
    return ",".join(repr(t) for t in numbers(grid, "grid").ravel().tolist()).encode()


def fill(options: SampleOptions, recipe: Any, function: str, model: Any = None) -> Any:
    """psld_sample_options of a recipe, and of a model if there is one, from keywords, filled in as the commands do."""
    check_names(options, function)
    given: Dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    _check_uses(options)
    o = initial("PSLD_SAMPLE_DEFAULTS")
    for name, field, kind, zero in _NUMBERS:
        if name in given:
            setattr(o, field, number(name, given[name], kind, zero))
    o.grid = grid_text(given.get("grid"))
    o.seed = seed_number(given.get("seed", 0))
    if given.get("no_denoise"):
        o.denoise = 0
    sampler = given.get("sampler")
    if sampler is not None and sampler != row("quality", "normal").sampler.decode():
        o.sampler = encode(sampler)
    if model is not None and "quality" not in given and (sampler is None or o.sampler):
        lib.psld_model_prefer(model, ctypes.byref(o))
    if not o.sampler:
        lib.psld_sample_quality(recipe, encode(given.get("quality", "normal")), ctypes.byref(o))
    return o


# ---- Labels --------------------------------------------------------------------------------------------------------


def labels_struct(
    label: Optional[ArrayLike], cfg: Optional[float], cfg_range: Optional[Sequence[float]], first: int = 0
) -> Any:
    """psld_labels of class numbers (None: drawn by the library), which it keeps."""
    struct = initial("PSLD_LABELS_DEFAULTS")
    struct.first = first
    if label is not None:
        array = np.ascontiguousarray(label, np.int32)
        struct.label, struct.count, struct.keep = array.__array_interface__["data"][0], array.size, array
    if cfg is not None:
        if not math.isfinite(cfg):
            raise ArgumentError(f"cfg: expected a finite number, found {cfg!r}")
        struct.cfg = cfg if cfg != _c.PSLD_UNSET else np.nextafter(cfg, 0)
    if cfg_range is not None:
        low, high = numbers(cfg_range, "cfg_range").ravel().tolist() if np.size(cfg_range) == 2 else (0.0, 0.0)
        if not 0 <= low < high:
            raise ArgumentError(
                f"cfg_range: expected two numbers (low, high) with 0 <= low < high, found {cfg_range!r}"
            )
        struct.sigma_min, struct.sigma_max = low, high
    return struct


def label_numbers(values: ArrayLike, classes: int) -> List[int]:
    """The caller's class numbers, -1 for none."""
    array = numbers(values, "labels").ravel()
    for i, value in enumerate(array.tolist()):
        if not (-1 <= value < classes and value == math.floor(value)):
            raise ArgumentError(
                f"labels: label {i}: expected a class from 0 to {classes - 1}, or -1 for none, " f"found {value:g}"
            )
    return [int(value) for value in array]
