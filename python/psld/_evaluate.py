"""Evaluation: distances between sets of samples, as arrays or as files."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _algebra, _arrays, _c
from ._calls import Call, Progress
from ._errors import ArgumentError
from ._library import Handle, Path, address, encode, initial, lend, lib, make
from ._model import Model
from ._options import number, seed_number
from ._read import is_path, shipped

Set = Union[NDArray[Any], Path]


class Comparison(NamedTuple):
    """Results of :func:`evaluate`; metrics that were not asked for are None."""

    samples: Tuple[int, int]
    dim: int
    fid: Optional[float]
    inception_score: Optional[float]
    inception_score_deviation: Optional[float]
    kid: Optional[float]
    kid_deviation: Optional[float]
    precision: Optional[float]
    recall: Optional[float]
    sliced_wasserstein: Optional[float]


class Likelihood(NamedTuple):
    """Results of :func:`nll`."""

    samples: int
    bits: float
    error: float
    nats: float
    nfe: int
    is_bound: bool
    is_exact: bool


class Features:
    """Computes features of images: the FID network, or a classifier of psld (whose distances are not FID).

    Called with images u8 [n, channels, height, width] it gives features float32 [n, dim].
    """

    def __init__(self, weights: Path) -> None:
        path = shipped(weights, "models", ".safetensors")
        self._handle = make(lib.psld_features_open, lib.psld_features_free, encode(path))
        self.name: str = lib.psld_features_name(self._handle.pointer).decode()
        self.dim: int = lib.psld_features_dim(self._handle.pointer)
        self.classes: int = lib.psld_features_classes(self._handle.pointer)
        self.is_fid: bool = bool(lib.psld_features_is_fid(self._handle.pointer))

    def __call__(self, images: Any) -> NDArray[np.float32]:
        return self._extract(images)[0]

    def logits(self, images: Any) -> NDArray[np.float32]:
        """Logits [n, classes], for the inception score."""
        return self._extract(images)[1]

    def _extract(self, images: Any) -> Tuple[NDArray[np.float32], NDArray[np.float32]]:
        pixels = _arrays.to_numpy(images, "images")
        if pixels.dtype != np.uint8 or pixels.ndim != 4:
            raise ArgumentError(
                f"images: expected uint8 [n, channels, height, width], found {pixels.dtype} " f"{pixels.shape}"
            )
        features = np.empty((len(pixels), self.dim), np.float32)
        logits = np.empty((len(pixels), self.classes), np.float32)
        lib.psld_features_extract(self._handle.pointer, lend(pixels), address(features), address(logits))
        return features, logits


# ---- Of arrays -----------------------------------------------------------------------------------------------------


def _rows(rows: Any, name: str) -> NDArray[Any]:
    array = _arrays.to_numpy(rows, name)
    if array.ndim != 2 or not array.size:
        raise ArgumentError(f"{name}: expected features [n, dim], found the shape {array.shape}")
    return np.ascontiguousarray(array, array.dtype if array.dtype in (np.float32, np.float64) else np.float64)


def _statistics(rows: Any, name: str) -> Handle:
    array = _rows(rows, name).astype(np.float32, copy=False)
    statistics = make(lib.psld_statistics_create, lib.psld_statistics_free, array.shape[1])
    lib.psld_statistics_add(statistics.pointer, len(array), address(array))
    lib.psld_statistics_finish(statistics.pointer)
    return statistics


def frechet(a: Any, b: Any) -> float:
    """Frechet distance between Gaussians with the moments of features a and b, [n, dim] each: FID of FID features.

    >>> import numpy, psld
    >>> a = numpy.random.default_rng(0).normal(size=(500, 4))
    >>> round(psld.frechet(a, a + 2), 6)
    16.0
    """
    left, right = _statistics(a, "a"), _statistics(b, "b")
    return _pair(lib.psld_frechet_distance, left.pointer, right.pointer, count=1)[0]


def kid(
    a: Any, b: Any, *, subsets: Optional[int] = None, subset_size: Optional[int] = None, seed: Optional[int] = None
) -> Tuple[float, float]:
    """Kernel inception distance of features: mean and deviation over subsets (100 of 1000)."""
    o = initial("PSLD_KID_DEFAULTS")
    if subsets is not None:
        o.subsets = number("subsets", subsets, int, False)
    if subset_size is not None:
        o.subset_size = number("subset_size", subset_size, int, False)
    if seed is not None:
        o.seed = seed_number(seed)
    mean, deviation = _pair(lib.psld_kid, lend(_rows(a, "a")), lend(_rows(b, "b")), ctypes.byref(o))
    return mean, deviation


def inception_score(logits: Any, splits: int = 10, shuffle: bool = True) -> Tuple[float, float]:
    """Inception score of logits [n, classes]: mean and deviation over splits."""
    mean, deviation = _pair(lib.psld_inception_score, lend(_rows(logits, "logits")), splits, int(shuffle))
    return mean, deviation


def precision_recall(generated: Any, real: Any, neighbours: int = 3) -> Tuple[float, float]:
    """Fractions of generated features within the manifold of the real ones, and the other way round."""
    precision, recall = _pair(
        lib.psld_precision_recall, lend(_rows(generated, "generated")), lend(_rows(real, "real")), neighbours
    )
    return precision, recall


def sliced_wasserstein(a: Any, b: Any, directions: int = 256, seed: int = 0) -> float:
    """Mean over random directions of the Wasserstein-1 distance between projections of points a and b.

    >>> import numpy, psld
    >>> a = numpy.random.default_rng(0).normal(size=(1000, 2))
    >>> psld.sliced_wasserstein(a, a)
    0.0
    """
    left, right = (_rows(rows, name).astype(np.float64, copy=False) for rows, name in ((a, "a"), (b, "b")))
    if left.shape[1] != right.shape[1]:
        raise ArgumentError(f"sliced_wasserstein: points of {left.shape[1]} and of {right.shape[1]} numbers")
    return _pair(
        lib.psld_sliced_wasserstein,
        left.shape[1],
        len(left),
        address(left),
        len(right),
        address(right),
        number("directions", directions, int, False),
        seed_number(seed),
        count=1,
    )[0]


def _pair(function: Any, *arguments: Any, count: int = 2) -> Tuple[float, ...]:
    """The numbers that a function leaves in its last parameters."""
    found = [ctypes.c_double() for _ in range(count)]
    function(*arguments, *(ctypes.byref(value) for value in found))
    return tuple(value.value for value in found)


# ---- Of sets -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _as_set(given: Set, limit: int, options: Any) -> Iterator[Handle]:
    """A psld_set of a file, or of an array: pixels u8 [n, channels, height, width], or rows of floats."""
    if is_path(given):
        path: Any = given
        yield make(lib.psld_set_open_as, lib.psld_set_free, encode(path), limit, ctypes.byref(options))
        return
    array = _arrays.to_numpy(given, "set")
    if array.dtype != np.uint8:
        array = _rows(array, "set")
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "set.npy")
        np.save(path, array)
        yield make(lib.psld_set_open_as, lib.psld_set_free, encode(path), limit, ctypes.byref(options))


_BITS = {
    "fid": _c.PSLD_FRECHET,
    "is": _c.PSLD_INCEPTION_SCORE,
    "kid": _c.PSLD_KID,
    "prc": _c.PSLD_PRECISION_RECALL,
    "swd": _c.PSLD_SLICED,
}


def evaluate(
    generated: Set,
    real: Optional[Set] = None,
    *,
    metric: Union[str, Sequence[str]] = "fid",
    weights: Union[Features, Path, None] = None,
    n: int = 0,
    size: Optional[int] = None,
    fit: str = "crop",
    splits: Optional[int] = None,
    neighbours: Optional[int] = None,
    kid_subsets: Optional[int] = None,
    kid_size: Optional[int] = None,
    seed: int = 0,
    progress: Progress = None,
) -> Comparison:
    """Compares two sets, as ``psld eval``: metrics "fid", "is", "kid", "prc", "swd", one or several ("fid,kid").

    A set is an array (pixels u8 [n, channels, height, width], or rows of features or points) or a path (a folder or
    archive of images, .npy, statistics .npz, "toy:moons"), of which the first `n` are taken. `weights` turn images into
    features: the FID network or a classifier. `size` and `fit` ("crop", "stretch") resize images.

    >>> import numpy, psld
    >>> a = numpy.random.default_rng(0).normal(size=(300, 2))
    >>> psld.evaluate(a, a, metric="swd").sliced_wasserstein
    0.0
    """
    o, found = initial("PSLD_COMPARE_DEFAULTS"), initial("PSLD_COMPARISON_EMPTY")
    bits = ctypes.c_uint()
    lib.psld_metrics_parse((metric if isinstance(metric, str) else ",".join(metric)).encode(), ctypes.byref(bits))
    o.metrics = bits.value
    for field, name, value in (
        ("splits", "splits", splits),
        ("neighbours", "neighbours", neighbours),
        ("kid_subsets", "kid_subsets", kid_subsets),
        ("kid_subset_size", "kid_size", kid_size),
    ):
        if value is not None:
            setattr(o, field, number(name, value, int, False))
    o.seed = seed_number(seed)
    images = initial("PSLD_DATA_DEFAULTS")
    if fit not in ("crop", "stretch"):
        raise ArgumentError(f"fit: expected crop or stretch, found {fit!r}")
    images.stretch = int(fit == "stretch")
    if size is not None:
        images.image_size = number("size", size, int, False)
    features = weights if isinstance(weights, Features) or weights is None else Features(weights)
    call = Call(progress)
    o.progress, o.progress_user = call.progress, call.key
    with contextlib.ExitStack() as sets:
        first = sets.enter_context(_as_set(generated, n, images))
        second = sets.enter_context(_as_set(real, n, images)) if real is not None else None
        call.run(
            lib.psld_compare,
            first.pointer,
            second.pointer if second else None,
            features._handle.pointer if features else None,
            ctypes.byref(o),
            ctypes.byref(found),
        )
    has = {name: bool(o.metrics & bit) for name, bit in _BITS.items()}
    values: Dict[str, Any] = dict(
        fid=found.frechet if has["fid"] else None,
        inception_score=found.score if has["is"] else None,
        inception_score_deviation=found.score_deviation if has["is"] else None,
        kid=found.kid if has["kid"] else None,
        kid_deviation=found.kid_deviation if has["kid"] else None,
        precision=found.precision if has["prc"] else None,
        recall=found.recall if has["prc"] else None,
        sliced_wasserstein=found.sliced if has["swd"] else None,
    )
    return Comparison((found.count[0], found.count[1]), found.dim, **values)


def nll(
    model: Model,
    data: Set,
    *,
    n: int = 0,
    divergence: str = "auto",
    probes: Optional[int] = None,
    tol: Optional[float] = None,
    eps: Optional[float] = None,
    seed: int = 0,
    progress: Progress = None,
) -> Likelihood:
    """Negative log-likelihood of data under a model in bits per dimension, as ``psld eval --metric nll``."""
    if divergence not in ("auto", "exact", "hutchinson"):
        raise ArgumentError(f"divergence: expected auto, exact or hutchinson, found {divergence!r}")
    o, found, images = initial("PSLD_LIKELIHOOD_DEFAULTS"), initial("PSLD_NLL_EMPTY"), initial("PSLD_DATA_DEFAULTS")
    if divergence != "auto":
        o.exact = int(divergence == "exact")
    for field, name, value, kind in (
        ("probes", "probes", probes, int),
        ("tolerance", "tol", tol, float),
        ("eps", "eps", eps, float),
    ):
        if value is not None:
            setattr(o, field, number(name, value, kind, False))
    o.seed = seed_number(seed)
    lib.psld_model_data_options(model._default.pointer, ctypes.byref(images))
    call = Call(progress)
    o.progress, o.progress_user = call.progress, call.key
    with _as_set(data, n, images) as points, model._lock:
        call.run(lib.psld_model_nll, model._default.pointer, points.pointer, ctypes.byref(o), ctypes.byref(found))
    return Likelihood(
        found.count, found.bits, found.error, found.nats, found.nfe, bool(found.is_bound), bool(found.is_exact)
    )
