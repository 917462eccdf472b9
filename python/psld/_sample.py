"""Score sources, and sampling from any of them."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _c
from ._calls import Call, current
from ._errors import ArgumentError, NotFinite
from ._library import Handle, Path, address, finite, initial, lib, make, numbers
from ._options import SampleOptions, fill, label_numbers, labels_struct, number
from ._recipe import Recipe, as_recipe

if TYPE_CHECKING:
    from typing_extensions import Unpack

Shape = Tuple[int, ...]
PREDICTS = {"eps": _c.PSLD_PREDICTS_EPS, "score": _c.PSLD_PREDICTS_SCORE, "data": _c.PSLD_PREDICTS_DATA}

# ---- Callbacks -----------------------------------------------------------------------------------------------------

_scores: Dict[int, "_Score"] = {}
_keys = itertools.count(1)


class _Score:
    """A Python function behind a score source: what the library has for it, and what it is given."""

    def __init__(
        self, function: Callable[..., Any], recipe: Recipe, shape: Shape, predicts: str, like: Any, labelled: bool
    ) -> None:
        self._function = function
        self._like = like
        self._labelled = labelled
        variables = 1 if predicts == "data" else len(recipe.predicted)
        self._in = (recipe.k * shape[0], *shape[1:])
        self._out = (variables * shape[0], *shape[1:])
        self._width = math.prod(self._in)
        self._predicts = predicts
        some = predicts != "data" and len(recipe.predicted) < recipe.k
        self._which = f" (of the variables recipe.predicted, {recipe.predicted})" if some else ""
        self._own: Optional[NDArray[np.float64]] = None
        self._begin = self._end = 0

    def owns(self, z: Optional[NDArray[np.float64]]) -> None:
        """States in this array are handed over as they are: it lives as long as a view of it."""
        self._own = z
        self._begin = address(z) if z is not None else 0
        self._end = self._begin + z.nbytes if z is not None else 0

    def _states(self, place: int, n: int) -> NDArray[np.float64]:
        if self._own is not None and self._begin <= place < self._end:
            at = (place - self._begin) // 8
            return self._own[at : at + n * self._width].reshape(n, *self._in)
        return _copy(place, n * self._width, np.float64).reshape(n, *self._in)

    def answer(self, states: Any, out: int) -> None:
        n = states.n
        given = [self._states(states.z, n), _copy(states.t, n, np.float64)]
        if self._labelled:
            given.append(_copy(states.label, n, np.int32) if states.label else np.full(n, -1, np.int32))
        if self._like is not None:
            given[:2] = [_arrays.like(array, self._like) for array in given[:2]]
        value = self._function(*given)
        result = value if type(value) is np.ndarray else _arrays.to_numpy(value, "score")
        if result.dtype.kind not in "fiu":
            result = _arrays.to_numpy(result, "score")
        expected = (n, *self._out)
        if result.shape != expected:
            raise ArgumentError(
                f"score: expected {self._predicts} of the shape {expected}{self._which}, found {result.shape}"
            )
        numbers = _view(out, result.size)
        numbers.reshape(expected)[...] = result
        is_finite = np.isfinite(numbers)
        if not is_finite.all():
            bad = int(np.argmin(is_finite)) // (numbers.size // n)
            raise NotFinite(
                f"score: {self._predicts} of state {bad} is not finite at t = {float(_view(states.t, n)[bad]):.6g}"
            )


def _view(place: int, count: int) -> NDArray[np.float64]:
    """Numbers in memory of the library."""
    memory: Any = (ctypes.c_double * count).from_address(place)
    return np.frombuffer(memory, np.float64)


def _copy(place: int, count: int, dtype: Any) -> NDArray[Any]:
    array = np.empty(count, dtype)
    ctypes.memmove(address(array), place, array.nbytes)
    return array


def _on_predict(user: int, states: Any, out: int) -> int:
    return _c.PSLD_OK if current().catch(_scores[user].answer, states.contents, out) else _c.PSLD_CANCELLED


_PREDICT = _c.psld_score_fn(_on_predict)


def _callback_source(score: _Score, recipe: Recipe, predicts: str, exact: bool, classes: int) -> Handle:
    key = next(_keys)
    callback = initial("PSLD_CALLBACK_DEFAULTS")
    callback.predicts = PREDICTS[predicts]
    callback.recipe = recipe._pointer
    callback.predict = _PREDICT
    callback.user = key
    callback.classes = classes
    callback.is_exact = int(exact)
    _scores[key] = score

    def free(pointer: Any) -> None:
        lib.psld_source_free(pointer)
        _scores.pop(key, None)

    return make(lib.psld_source_callback, free, ctypes.byref(callback), keep=(recipe, score))


# ---- Sources of the library ----------------------------------------------------------------------------------------


class Source:
    """A score source of the library: of a :class:`Mixture` or a :class:`psld.Model`.

    Called with states [n, k * channels, ...] and times it gives eps of the predicted variables, in float64.
    """

    def __init__(self, recipe: Recipe, shape: Shape, handle: Handle, lock: Any = None) -> None:
        self.recipe = recipe
        self.shape = shape
        self._handle = handle
        self._lock = lock

    @property
    def _pointer(self) -> Any:
        return self._handle.pointer

    def __call__(self, z: Any, t: ArrayLike, label: Optional[ArrayLike] = None) -> NDArray[np.float64]:
        """eps of states z at times t; `label` [n] are classes, -1 for none."""
        return self._answer(lib.psld_source_predict, z, t, label, len(self.recipe.predicted))

    def denoise(self, z: Any, t: ArrayLike, label: Optional[ArrayLike] = None) -> NDArray[np.float64]:
        """Clean data E[x_0 | z_t] by what the source predicts."""
        return self._answer(lib.psld_source_denoise, z, t, label, 1, self.recipe._pointer)

    def _answer(
        self, function: Any, z: Any, t: ArrayLike, label: Optional[ArrayLike], variables: int, *before: Any
    ) -> NDArray[np.float64]:
        states, keep = _states_struct(self.recipe, self.shape, z, t, label)
        out = np.empty((states.n, variables * self.shape[0], *self.shape[1:]))
        call = Call()
        with self._lock or _NO_LOCK:
            call.run(function, self._pointer, *before, ctypes.byref(states), address(out))
        del keep
        return out


class _NoLock:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


_NO_LOCK = _NoLock()


def _states_struct(recipe: Recipe, shape: Shape, z: Any, t: ArrayLike, label: Optional[ArrayLike]) -> Tuple[Any, Any]:
    array = np.ascontiguousarray(_arrays.to_numpy(z, "z"), np.float64)
    width = recipe.k * math.prod(shape)
    if array.ndim < 2 or array.size != len(array) * width or not array.size:
        raise ArgumentError(
            f"z: expected states of the shape {(recipe.k * shape[0], *shape[1:])}, [n, ...], " f"found {array.shape}"
        )
    n = len(array)
    times = np.ascontiguousarray(
        np.broadcast_to(_arrays.to_numpy(t, "t"), (n,)) if np.ndim(t) == 0 else _arrays.to_numpy(t, "t"), np.float64
    )
    if times.shape != (n,):
        raise ArgumentError(f"t: expected one time, or one for each of {n} states, found the shape {times.shape}")
    states = _c.psld_states(
        size=ctypes.sizeof(_c.psld_states), n=n, dim=math.prod(shape), z=address(array), t=address(times)
    )
    labels = None
    if label is not None:
        labels = np.ascontiguousarray(np.broadcast_to(np.asarray(label, np.int32), (n,)))
        states.label = address(labels)
    return states, (array, times, labels)


class Mixture:
    """Data distributed as a mixture of isotropic Gaussians, whose score is known under every recipe.

    >>> import psld
    >>> two = psld.Mixture(means=[[-1.0, 0.0], [1.0, 0.0]], scales=0.2)
    >>> two.draw("psld gamma=0.02", t=0, n=3).shape
    (3, 2)
    >>> source = two.source("psld gamma=0.02")
    >>> source([[0.1, 0.2, 0.0, 0.3]], 0.5).shape
    (1, 4)
    """

    def __init__(
        self,
        means: ArrayLike,
        scales: ArrayLike,
        weights: Optional[ArrayLike] = None,
        label: Optional[ArrayLike] = None,
    ) -> None:
        points = np.atleast_2d(numbers(means, "means"))
        count = len(points)
        widths = np.ascontiguousarray(np.broadcast_to(numbers(scales, "scales"), (count,)))
        shares = np.full(count, 1 / count) if weights is None else numbers(weights, "weights").ravel()
        if shares.shape != (count,):
            raise ArgumentError(f"weights: expected {count}, one for each component, found {shares.size}")
        self._handle = make(
            lib.psld_mixture_create,
            lib.psld_mixture_free,
            count,
            points.shape[1],
            address(shares),
            address(points),
            address(widths),
        )
        if label is not None:
            classes = np.ascontiguousarray(label, np.int32)
            if classes.shape != (count,):
                raise ArgumentError(f"label: expected {count}, one for each component, found {classes.size}")
            self._handle = make(lib.psld_mixture_label, lib.psld_mixture_free, self._handle.pointer, address(classes))
        self.dim: int = points.shape[1]

    def draw(
        self, recipe: Union[Recipe, Path], t: float = 0, n: int = 1000, seed: int = 0, first: int = 0
    ) -> NDArray[np.float64]:
        """Draws of z_t, [n, k * dim]; t = 0 gives the data alone, [n, dim]."""
        process = as_recipe(recipe)
        z = np.empty((number("n", n, int, False), process.k * self.dim))
        lib.psld_mixture_draw(self._handle.pointer, process._pointer, t, seed, first, len(z), address(z))
        return z if t > 0 else z[:, : self.dim].copy()

    def source(self, recipe: Union[Recipe, Path]) -> Source:
        """The exact score under a recipe."""
        process = as_recipe(recipe)
        handle = make(lib.psld_source_mixture, lib.psld_source_free, self._handle.pointer, process._pointer)
        return Source(process, (self.dim,), handle)

    def density(self, x: ArrayLike) -> NDArray[np.float64]:
        """The density of the data at points [n, dim]."""
        points = np.atleast_2d(numbers(x, "x"))
        if points.shape[1] != self.dim:
            raise ArgumentError(f"x: expected points of {self.dim} numbers, found {points.shape[1]}")
        return np.array([lib.psld_mixture_density(self._handle.pointer, address(point)) for point in points])


# ---- Sampling ------------------------------------------------------------------------------------------------------


def shape_of(shape: Union[int, Sequence[int]]) -> Shape:
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not sizes or any(not isinstance(size, (int, np.integer)) or size < 1 for size in sizes):
        raise ArgumentError(f"shape: expected the shape of one sample, as (3, 32, 32), found {shape!r}")
    return tuple(int(size) for size in sizes)


def default_count(shape: Shape) -> int:
    """Of samples, as the commands have it: 64 images, 1000 points."""
    return 64 if len(shape) == 3 and shape[0] in (1, 3) else 1000


def sample(
    recipe: Union[Recipe, Path],
    score: Union[Callable[..., Any], Source],
    shape: Union[int, Sequence[int]],
    *,
    n: Optional[int] = None,
    predicts: str = "eps",
    exact: Optional[bool] = None,
    like: Any = None,
    labels: Optional[ArrayLike] = None,
    classes: Optional[int] = None,
    cfg: Optional[float] = None,
    cfg_range: Optional[Sequence[float]] = None,
    start: Any = None,
    state: bool = False,
    first: int = 0,
    dtype: Any = None,
    **options: Unpack[SampleOptions],
) -> Any:
    """Draws samples from any score: [n, *shape].

    `score(z, t)` is given states [n, k * channels, ...] and their times [n], and returns what it `predicts`: "eps", the
    noise, or the "score", of the predicted variables [n, predicted * channels, ...]; or clean "data" [n, channels,
    ...]. It may also be a :class:`Source`. `exact` says whether eps comes from an exact score or was learned, with the
    stabiliser of the recipe in its kernel; unless given, that of a function of NumPy arrays counts as exact.

    With `like`, an array or tensor, the score is called with arrays of that kind, type and device, and the samples come
    so, too; of a torch.nn.Module its parameters are taken. Without, NumPy arrays of float64 are given, and samples are
    float32, or `dtype`. Arrays that the score is given are valid until it returns: copy what you keep.

    With `labels` (classes [n], -1 for none) the score is called as `score(z, t, label)`; `cfg` is classifier-free
    guidance by it, in `cfg_range` of the effective noise alone. `start` are initial states instead of draws of the
    stationary law, and `state` asks for whole states [n, k * channels, ...]. Samples first ... first + n - 1 of the
    seed are drawn. What else can be chosen: :class:`psld.SampleOptions`.

    Exceptions of the score come out unchanged; Ctrl-C ends within a step.

    >>> import numpy, psld
    >>> recipe = psld.Recipe("vp")
    >>> def normal_data(z, t):                       # the score of data N(0, 1) is -z at all times
    ...     return -z
    >>> x = psld.sample(recipe, normal_data, 2, n=1000, predicts="score", sampler="em", nfe=100, seed=1)
    >>> x.shape, x.dtype
    ((1000, 2), dtype('float32'))
    >>> bool(abs(x.std() - 1) < 0.05)
    True
    """
    process, sizes = as_recipe(recipe), shape_of(shape)
    count = number("n", default_count(sizes) if n is None else n, int, False)
    if predicts not in PREDICTS:
        raise ArgumentError(f"predicts: expected eps, score or data, found {predicts!r}")
    o = fill(options, process._pointer, "sample")
    dim = math.prod(sizes)
    if options.get("batch") is None:
        o.batch = max(64, min(count, 2**20 // (process.k * dim)))
    if labels is not None:
        array = numbers(labels, "labels").ravel()
        classes = int(max(array.max(initial=0), 0)) + 1 if classes is None else classes
        o.labels = ctypes.pointer(labels_struct(label_numbers(array, classes), cfg, cfg_range, first))
    elif cfg is not None or cfg_range is not None:
        raise ArgumentError("cfg and cfg_range need labels")
    z = np.empty(count * process.k * dim)
    begin = None if start is None else _start(start, count, process, sizes)
    like = like if like is not None else _arrays.model_of(score)
    own = None
    if isinstance(score, Source):
        if score.shape != sizes:
            raise ArgumentError(f"shape: the source has data of the shape {score.shape}, found {sizes}")
        source, lock = score._handle, score._lock
    elif callable(score):
        own = _Score(score, process, sizes, predicts, like, labels is not None)
        own.owns(z)
        exact = like is None if exact is None else exact
        source, lock = _callback_source(own, process, predicts, exact, classes or 0), None
    else:
        raise ArgumentError(f"score: expected a function of (z, t), found {type(score).__name__}")
    call = Call(options.get("progress"))
    o.progress, o.progress_user = call.progress, call.key
    with lock or _NO_LOCK, _arrays.without_gradients(like):
        call.run(
            lib.psld_sample,
            process._pointer,
            source.pointer,
            ctypes.byref(o),
            first,
            count,
            dim,
            None if begin is None else address(begin),
            address(z),
            None,
        )
    if own is not None:
        own.owns(None)
    result = z.reshape(count, process.k * sizes[0], *sizes[1:])
    result = result if state else result[:, : sizes[0]]
    if like is not None and _arrays.is_other(like):
        return _arrays.like(np.ascontiguousarray(result), like)
    return np.ascontiguousarray(result, dtype or getattr(like, "dtype", None) or np.float32)


def _start(start: Any, count: int, recipe: Recipe, shape: Shape) -> NDArray[np.float64]:
    states = np.ascontiguousarray(_arrays.to_numpy(start, "start"), np.float64)
    if states.size != count * recipe.k * math.prod(shape) or len(states) != count:
        raise ArgumentError(
            f"start: expected states of the shape {(count, recipe.k * shape[0], *shape[1:])}, " f"found {states.shape}"
        )
    return finite(states, "start")
