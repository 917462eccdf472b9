"""Recipes: forward processes with exact kernels."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _c
from ._errors import ArgumentError
from ._library import Path, address, encode, initial, lib, make, numbers

if TYPE_CHECKING:
    from ._show import Picture

Floats = NDArray[np.float64]
MODES = {"hsm": _c.PSLD_HSM, "dsm": _c.PSLD_DSM}


class Kernel(NamedTuple):
    """p(z_t | z_0) = N(mean z_0, cov), chol chol' = cov: k x k for each t."""

    mean: Floats
    cov: Floats
    chol: Floats


class Factor(NamedTuple):
    """The factor of the stabilised covariance, by which eps becomes noise, and its inverse: k x k for each t."""

    factor: Floats
    inverse: Floats


class Analysis(NamedTuple):
    """Properties of a process, see :meth:`Recipe.analyse`."""

    eigenvalues: NDArray[np.complex128]
    damping: str
    rate: float
    distance: float
    long_enough: bool
    sigma_max: float


def _yaml(value: Any) -> str:
    """A value of a key as YAML."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"recipe: expected a number, numbers or a word, found {value!r}")
    return str(array.astype(np.float64).tolist())


class Recipe:
    """A forward process of the complete recipe, and the meaning of its eps.

    ``dz = -beta(t) (D + Q) P z dt + sqrt(2 beta(t) D) dw``, with the same k x k matrices D (symmetric, not negative)
    and Q (skew-symmetric) for every coordinate of the data; ``P = diag(1, 1/mass)``.

    A preset or a file, with keys that override its own, or matrices:

    >>> import psld
    >>> psld.Recipe("psld gamma=0.02").k
    2
    >>> psld.Recipe("psld", gamma=0.02) == psld.Recipe("psld gamma=0.02")
    True
    >>> own = psld.Recipe(D=[[0, 0], [0, 1]], Q=[[0, -1], [1, 0]], mass=0.25, beta=4)
    >>> own.analyse().damping
    'critical'

    The keys are those of recipe files: preset, name, gamma, nu, m_inv, D, Q, drift, noise, mass, beta, init,
    stabiliser, factor, kernel. What does not belong to the family is refused with the reason:

    >>> psld.Recipe(D=[[1, 0.2], [0, 1]], Q=[[0, 0], [0, 0]])
    Traceback (most recent call last):
    psld.InputError: recipe:1: D is not symmetric: D[1][0] = 0 and D[0][1] = 0.2, off by 0.2

    States are arrays ``[n, k * channels, ...]``: all channels of x, then all of m_1, and so on.
    """

    def __init__(self, text: Optional[Path] = None, **keys: Any) -> None:
        given = {name: _yaml(value) for name, value in keys.items()}
        if text is None and not keys:
            raise ArgumentError("recipe: expected a preset, a file, or D and Q")
        if text is None:
            yaml = "".join(f"{name}: {value}\n" for name, value in given.items())
            self._own(make(lib.psld_recipe_parse, lib.psld_recipe_free, yaml.encode(), b"recipe"))
        else:
            words = [os.fspath(text), *(f"{name}={value}" for name, value in given.items())]
            self._own(make(lib.psld_recipe_open, lib.psld_recipe_free, encode(" ".join(words))))

    def _own(self, handle: Any) -> None:
        self._handle = handle
        spec = lib.psld_recipe_get(handle.pointer).contents
        k = spec.k
        variables = (ctypes.c_int * _c.PSLD_MAX_K)()
        count = lib.psld_recipe_predicted(handle.pointer, variables)
        self.name: str = spec.name.decode()
        #: Variables for each coordinate of the data: 1 + auxiliary ones.
        self.k: int = k
        self.D: Floats = np.array(spec.D[: k * k]).reshape(k, k)
        self.Q: Floats = np.array(spec.Q[: k * k]).reshape(k, k)
        self.mass: Floats = np.array(spec.mass[: k - 1])
        #: Variances of the auxiliary variables at t = 0, in units of their mass.
        self.init: Floats = np.array(spec.init[: k - 1])
        #: beta at t = 0 and at t = 1; linear between.
        self.beta: Tuple[float, float] = (spec.beta_min, spec.beta_max)
        self.stabiliser: float = spec.stabiliser
        #: The kernel that eps belongs to: "hsm", given x_0, or "dsm", given all of z_0.
        self.mode: str = "dsm" if spec.mode == _c.PSLD_DSM else "hsm"
        #: The variables whose eps is predicted: one block of channels each, in this order.
        self.predicted: Tuple[int, ...] = tuple(variables[:count])

    @classmethod
    def _copy(cls, pointer: Any) -> "Recipe":
        """A copy of a recipe that belongs to another object."""
        return cls._from_spec(bytes(lib.psld_recipe_get(pointer).contents))

    @classmethod
    def _from_spec(cls, raw: bytes) -> "Recipe":
        spec = _c.psld_recipe_spec.from_buffer_copy(raw)
        spec.size = ctypes.sizeof(spec)
        recipe = cls.__new__(cls)
        recipe._own(make(lib.psld_recipe_create, lib.psld_recipe_free, ctypes.byref(spec)))
        return recipe

    def __reduce__(self) -> Any:
        return Recipe._from_spec, (bytes(lib.psld_recipe_get(self._pointer).contents),)

    @property
    def _pointer(self) -> Any:
        return self._handle.pointer

    def __repr__(self) -> str:
        return f"<psld.Recipe {self.name}: k = {self.k}, beta {_span(self.beta)}>"

    def __eq__(self, other: object) -> bool:
        """Whether both are the same process; names and factors may differ."""
        if not isinstance(other, Recipe):
            return NotImplemented
        return bool(lib.psld_recipe_same(self._pointer, other._pointer))

    def __hash__(self) -> int:
        return hash((self.k, self.D.tobytes(), self.Q.tobytes(), self.beta))

    def difference(self, other: "Recipe") -> str:
        """The first parameter in which two recipes differ, or "".

        >>> import psld
        >>> psld.Recipe("psld").difference(psld.Recipe("psld gamma=0.02"))
        'gamma is 0.01, not 0.02'
        """
        text = ctypes.create_string_buffer(256)
        lib.psld_recipe_difference(self._pointer, other._pointer, text, len(text))
        return text.value.decode()

    # ---- Kernels ---------------------------------------------------------------------------------------------------

    def _each(
        self, t: ArrayLike, shapes: List[Tuple[int, ...]], function: Callable[..., Any], *before: Any
    ) -> List[Floats]:
        """Calls function(recipe, t, *before, out, ...) for every t: arrays of t's shape and these behind it."""
        times = numbers(t, "t")
        out = [np.empty((times.size, *shape)) for shape in shapes]
        places = [(address(array), array.itemsize * array[0].size if times.size else 0) for array in out]
        for i, time in enumerate(times.ravel().tolist()):
            function(self._pointer, time, *before, *(place + i * step for place, step in places))
        return [array.reshape(times.shape + shape) for array, shape in zip(out, shapes)]

    def kernel(self, t: ArrayLike, mode: str = "hsm") -> Kernel:
        """The exact perturbation kernel at times t in [0, 1], without the stabiliser.

        `mode` "hsm" is the kernel given x_0, with auxiliary variables that start from N(0, init mass); "dsm" that given
        all of z_0.

        >>> import psld
        >>> psld.Recipe("psld gamma=0.02").kernel(0.1).cov
        array([[0.23416202, 0.12779862],
               [0.12779862, 0.21630186]])
        >>> psld.Recipe("told").kernel([0.1, 0.5]).mean.shape
        (2, 3, 3)
        """
        square = (self.k, self.k)
        return Kernel(*self._each(t, [square] * 3, lib.psld_recipe_kernel, _mode(mode)))

    def factor(self, t: ArrayLike, mode: Optional[str] = None) -> Factor:
        """The factor L of the stabilised covariance at times t in (0, 1] and its inverse: noise is L eps, the score
        -L^-T eps. `mode` is the recipe's own unless given."""
        square = (self.k, self.k)
        return Factor(*self._each(t, [square] * 2, lib.psld_recipe_factor, _mode(mode or self.mode)))

    def sigma(self, t: ArrayLike) -> Floats:
        """Effective noise sigma: z_t has the same information on x_0 as x_0 + sigma n.

        >>> import psld
        >>> round(float(psld.Recipe("psld gamma=0.02").sigma(1)), 1)
        268.2
        """
        return self._each(t, [()], lib.psld_recipe_sigma)[0]

    def time(self, sigma: ArrayLike) -> Floats:
        """The times at which the effective noise is sigma.

        >>> import psld
        >>> vp = psld.Recipe("vp")
        >>> float(vp.sigma(vp.time(0.5)).round(12))
        0.5
        """
        return self._each(sigma, [()], lib.psld_recipe_time)[0]

    def distance(self, t: ArrayLike) -> Floats:
        """Kullback-Leibler distance of p(z_t | x_0 = 1) from the stationary law, nats per coordinate."""
        return self._each(t, [()], lib.psld_recipe_distance)[0]

    def error_factors(self, t: ArrayLike) -> Tuple[Floats, Floats]:
        """How an Euler step carries errors of eps into x: terms of first order in the step, and the paper's lambda."""
        first, second = self._each(t, [(self.k,)] * 2, lib.psld_recipe_error_factors)
        return first, second

    def analyse(self) -> Analysis:
        """Eigenvalues and damping, slowest decay, distance from the stationary law and noise at t = 1.

        >>> import psld
        >>> told = psld.Recipe("told").analyse()
        >>> told.damping, told.long_enough
        ('critical', True)
        """
        found = initial("PSLD_ANALYSIS_EMPTY")
        lib.psld_recipe_analyse(self._pointer, ctypes.byref(found))
        eigenvalues = np.array(found.eigenvalue_re[: self.k]) + 1j * np.array(found.eigenvalue_im[: self.k])
        damping = lib.psld_damping_name(found.damping).decode()
        return Analysis(eigenvalues, damping, found.rate, found.distance, bool(found.long_enough), found.sigma_max)

    # ---- Training in your own framework ----------------------------------------------------------------------------

    def _rows(self, z: Any, variables: int, name: str) -> Any:
        """An array [n, variables * channels, ...] as [n, variables, numbers]."""
        if len(z.shape) < 2 or z.shape[1] % variables:
            raise ArgumentError(
                f"{name}: expected an array [n, {variables} * channels, ...], " f"found the shape {tuple(z.shape)}"
            )
        return _arrays.namespace(z).reshape(z, (z.shape[0], variables, -1))

    def _times(self, t: Any, n: int) -> Floats:
        times = _arrays.to_numpy(t, "t").astype(np.float64, copy=False).ravel()
        if times.size not in (1, n):
            raise ArgumentError(f"t: expected one time, or one for each of {n} samples, found {times.size}")
        return times

    def start(self, x0: Any, noise: Any) -> Any:
        """z_0 from data and normal numbers `noise` [n, (k - 1) * channels, ...]: the start of "dsm" kernels."""
        xp = _arrays.namespace(x0)
        deviation = _arrays.like(np.sqrt(self.init * self.mass)[:, None], x0)
        parts = self._rows(noise, self.k - 1, "noise") * deviation
        return _arrays.join([x0, xp.reshape(parts, noise.shape)])

    def perturb(self, x0: Any, t: Any, eps: Any, mode: Optional[str] = None) -> Any:
        """States z_t = mean(t) z_0 + L(t) eps.

        `x0` [n, channels, ...] is data, `t` [n] times in (0, 1], `eps` [n, k * channels, ...] normal numbers. The
        arrays may be of NumPy, PyTorch or any library that follows the array API; gradients flow through x0 and eps.
        With mode "dsm" (default: the recipe's own) x0 is all of z_0, [n, k * channels, ...]: see :meth:`start`.

        >>> import numpy, psld
        >>> told = psld.Recipe("told")
        >>> generator = numpy.random.default_rng(0)
        >>> x0, t = generator.normal(size=(5, 2)), generator.uniform(1e-3, 1, size=5)
        >>> eps = generator.normal(size=(5, 3 * 2))
        >>> told.perturb(x0, t, eps).shape
        (5, 6)
        """
        xp, mode = _arrays.namespace(x0), mode or self.mode
        known = self.k if _mode(mode) == _c.PSLD_DSM else 1
        start, noise = self._rows(x0, known, "x0"), self._rows(eps, self.k, "eps")
        if noise.shape[0] != start.shape[0] or noise.shape[2] != start.shape[2]:
            raise ArgumentError(
                f"eps: expected {self.k} times the channels of x0, found the shapes "
                f"{tuple(eps.shape)} and {tuple(x0.shape)}"
            )
        times = self._times(t, x0.shape[0])
        mean = _arrays.like(np.ascontiguousarray(self.kernel(times, mode).mean[:, :, :known]), x0)
        factor = _arrays.like(self.factor(times, mode).factor, x0)
        z = xp.matmul(mean, start) + xp.matmul(factor, noise)
        return xp.reshape(z, eps.shape)

    def target(self, eps: Any) -> Any:
        """The part of the noise [n, k * channels, ...] that a network predicts: that of the `predicted` variables.

        >>> import numpy, psld
        >>> cld = psld.Recipe("cld")
        >>> cld.predicted
        (1,)
        >>> cld.target(numpy.arange(8.0).reshape(2, 4))
        array([[2., 3.],
               [6., 7.]])
        """
        channels = eps.shape[1] // self.k
        self._rows(eps, self.k, "eps")
        if len(self.predicted) == self.k:
            return eps
        parts = [eps[:, v * channels : (v + 1) * channels] for v in self.predicted]
        return parts[0] if len(parts) == 1 else _arrays.join(parts)

    def likelihood_weight(self, t: Any) -> Any:
        """Weights of the bound on the likelihood: matrices M(t), one row and column per predicted variable, such that
        d' M d = 2 beta s' D s for an error d of eps and s = -L^-T d of the score. Of a tensor t they are a tensor."""
        times = numbers(t, "t")
        inverse = self.factor(times).inverse
        beta = self.beta[0] + (self.beta[1] - self.beta[0]) * times
        whole = 2 * beta[..., None, None] * (inverse @ self.D @ np.swapaxes(inverse, -1, -2))
        block: Floats = whole[..., self.predicted, :][..., self.predicted]
        return _arrays.like(block, t) if _arrays.is_other(t) else block

    def loss(self, prediction: Any, target: Any, t: Any, weighting: str = "fid") -> Any:
        """Mean square of the error of eps: as it is ("fid"), or weighted by the bound on the likelihood ("nll")."""
        xp = _arrays.namespace(prediction)
        error = self._rows(prediction - target, len(self.predicted), "prediction")
        if weighting == "fid":
            return xp.mean(error * error)
        if weighting != "nll":
            raise ArgumentError(f"weighting: expected fid or nll, found {weighting!r}")
        weight = _arrays.like(self.likelihood_weight(self._times(t, error.shape[0])), prediction)
        return xp.mean(error * xp.matmul(weight, error))

    def convert(self, prediction: Any, t: Any, z: Any = None, *, given: str = "eps", to: str = "score") -> Any:
        """One of "eps", "score" and "data" from another, for the predicted variables of states z at times t.

        eps is the noise of the recipe's own kernel, the score the gradient of log p_t(z), data the expected clean data
        E[x_0 | z_t]. The states are needed if one of both is data.

        >>> import numpy, psld
        >>> vp = psld.Recipe("vp")
        >>> eps = numpy.array([[0.5, -1.0]])
        >>> score = vp.convert(eps, 0.3, given="eps", to="score")
        >>> bool(numpy.allclose(vp.convert(score, 0.3, given="score", to="eps"), eps))
        True
        """
        for word in (given, to):
            if word not in ("eps", "score", "data"):
                raise ArgumentError(f"convert: expected eps, score or data, found {word!r}")
        if "data" in (given, to) and given != to and z is None:
            raise ArgumentError("convert: clean data and noise differ by the states: give z")
        if given == "data" and to != "data":
            prediction = self._from_data(prediction, t, z)
        elif given == "score" and to != "score":
            prediction = self._apply(self._score_maps(t, prediction)[0], prediction)
        if to == "data" and given != "data":
            return self._to_data(prediction, t, z)
        if to == "score" and given != "score":
            return self._apply(self._score_maps(t, prediction)[1], prediction)
        return prediction

    def _apply(self, maps: Floats, value: Any) -> Any:
        xp = _arrays.namespace(value)
        rows = self._rows(value, maps.shape[-1], "prediction")
        return xp.reshape(
            xp.matmul(_arrays.like(maps, value), rows),
            (value.shape[0], value.shape[1] // maps.shape[-1] * maps.shape[-2], *value.shape[2:]),
        )

    def _score_maps(self, t: Any, value: Any) -> Tuple[Floats, Floats]:
        """eps = first score, and score = second eps, for the predicted variables."""
        factor, inverse = self.factor(self._times(t, value.shape[0]))
        at = np.ix_(range(len(factor)), self.predicted, self.predicted)
        return (
            -np.ascontiguousarray(np.swapaxes(factor[at], 1, 2)),
            -np.ascontiguousarray(np.swapaxes(inverse[at], 1, 2)),
        )

    def _denoiser(self, t: Any, n: int) -> List[Floats]:
        k, p = self.k, len(self.predicted)
        return self._each(self._times(t, n), [(1, k), (1, p), (p, k), (p, 1)], lib.psld_recipe_denoiser)

    def _to_data(self, eps: Any, t: Any, z: Any) -> Any:
        state, of_eps, _, _ = self._denoiser(t, z.shape[0])
        return self._apply(state, z) + self._apply(of_eps, eps)

    def _from_data(self, x: Any, t: Any, z: Any) -> Any:
        _, _, white, gain = self._denoiser(t, z.shape[0])
        return self._apply(white, z) - self._apply(gain, x)

    # ---- Pictures --------------------------------------------------------------------------------------------------

    def plot(self, *others: "Recipe", path: Optional[Path] = None) -> "Picture":
        """A page of plots of this recipe, or of several beside each other: kernel, spectrum, noise, mixing, paths.

        It shows itself in a notebook; with `path` (.svg or .png) it is written there as well.
        """
        from ._show import _svg

        recipes = (self, *others)
        pointers = (ctypes.c_void_p * len(recipes))(*[recipe._pointer for recipe in recipes])
        picture = _svg(lib.psld_plot_recipes, pointers, len(recipes))
        if path is not None:
            lib.psld_plot_recipes(pointers, len(recipes), encode(path))
        return picture

    def _repr_svg_(self) -> str:
        return self.plot().svg or ""


def presets() -> Dict[str, str]:
    """The presets and what they are.

    >>> import psld
    >>> "psld" in psld.presets()
    True
    """
    found, index = {}, 0
    while lib.psld_preset_at(index):
        preset = lib.psld_preset_at(index).contents
        found[preset.name.decode()] = preset.summary.decode()
        index += 1
    return found


def as_recipe(recipe: Union[Recipe, Path]) -> Recipe:
    return recipe if isinstance(recipe, Recipe) else Recipe(recipe)


def _mode(mode: str) -> int:
    if mode not in MODES:
        raise ArgumentError(f"mode: expected hsm or dsm, found {mode!r}")
    return MODES[mode]


def _span(beta: Tuple[float, float]) -> str:
    return f"{beta[0]:g}" if beta[0] == beta[1] else f"{beta[0]:g} to {beta[1]:g}"
