"""NumPy's linear algebra, which the library uses in evaluation if it cannot load OpenBLAS."""

from __future__ import annotations

import ctypes
from typing import Any, Callable

import numpy as np

from . import _c
from ._library import initial, lib


def _view(place: int, *shape: int) -> Any:
    memory: Any = (ctypes.c_double * int(np.prod(shape))).from_address(place)
    return np.frombuffer(memory, np.float64).reshape(shape)


def _scatter(dim: int, rows: int, x: int, s: int) -> None:
    points = _view(x, rows, dim)
    _view(s, dim, dim)[...] += points.T @ points


def _products(dim: int, n: int, a: int, m: int, b: int, c: int) -> None:
    np.matmul(_view(a, n, dim), _view(b, m, dim).T, out=_view(c, n, m))


def _eigen(dim: int, a: int, values: int) -> None:
    matrix = _view(a, dim, dim)
    found, vectors = np.linalg.eigh(matrix)
    _view(values, dim)[...] = found
    matrix[...] = vectors.T


def _nuclear_norm(rows: int, columns: int, a: int, total: int) -> None:
    _view(total, 1)[0] = np.linalg.svd(_view(a, rows, columns), compute_uv=False)[::-1].sum()


def _guarded(function: Callable[..., None]) -> Callable[..., int]:
    def call(user: Any, *arguments: Any) -> int:
        try:
            function(*arguments)
            return _c.PSLD_OK
        except MemoryError:
            return _c.PSLD_NO_MEMORY
        except np.linalg.LinAlgError:
            return _c.PSLD_NOT_FINITE

    return call


_given = initial("PSLD_LINEAR_ALGEBRA_DEFAULTS")
_given.scatter = _c.psld_scatter_fn(_guarded(_scatter))
_given.products = _c.psld_products_fn(_guarded(_products))
_given.eigen = _c.psld_eigen_fn(_guarded(_eigen))
_given.nuclear_norm = _c.psld_nuclear_norm_fn(_guarded(_nuclear_norm))
lib.psld_linear_algebra_use(ctypes.byref(_given))
