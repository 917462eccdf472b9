"""Arrays of the caller's kind: NumPy's, PyTorch's, and those of any library that follows the array API (JAX, CuPy).

Only NumPy is imported here: a caller with arrays of another library has imported it already.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, ContextManager, Sequence

import numpy as np
from numpy.typing import NDArray

from ._errors import ArgumentError


def _torch() -> Any:
    return sys.modules.get("torch")


def is_torch(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def is_other(value: Any) -> bool:
    """Whether this is an array of another library than NumPy."""
    return is_torch(value) or (
        hasattr(value, "__array_namespace__") and not isinstance(value, (np.ndarray, np.generic))
    )


def namespace(value: Any) -> Any:
    """The module whose functions work on such arrays."""
    if is_torch(value):
        return _torch()
    return value.__array_namespace__() if is_other(value) else np


def join(parts: Sequence[Any]) -> Any:
    """Joins arrays [n, channels, ...] along their channels."""
    xp = namespace(parts[0])
    return (xp.concat if hasattr(xp, "concat") else xp.concatenate)(parts, axis=1)


def to_numpy(value: Any, name: str) -> NDArray[Any]:
    """An array of any kind as one of NumPy, without gradients; copied only if it is not in the memory of the CPU."""
    if isinstance(value, np.ndarray):
        array = value
    elif is_torch(value):
        value = value.detach().cpu()
        array = value.numpy() if value.dtype is not _torch().bfloat16 else value.float().numpy()
    elif value is None or isinstance(value, (str, bytes, dict, set)):
        raise ArgumentError(f"{name}: expected an array of numbers, found {type(value).__name__}")
    else:
        try:
            array = np.asarray(value)
        except Exception:
            raise ArgumentError(f"{name}: expected an array of numbers, found {type(value).__name__}") from None
    if array.dtype.kind not in "biuf":
        what = type(value).__name__ if array.dtype.kind == "O" else f"an array of {array.dtype}"
        raise ArgumentError(f"{name}: expected an array of numbers, found {what}")
    return array


def like(array: NDArray[Any], other: Any) -> Any:
    """A NumPy array as an array of the same kind as `like`, on its device; floats get its type if it has floats."""
    if is_torch(other):
        torch = _torch()
        dtype = other.dtype if other.dtype.is_floating_point else torch.get_default_dtype()
        return torch.from_dlpack(array).to(dtype=dtype, device=other.device)
    if is_other(other):
        xp = other.__array_namespace__()
        dtype = other.dtype if np.dtype(str(other.dtype)).kind == "f" else None
        return xp.asarray(array, dtype=dtype, copy=True)
    dtype = getattr(other, "dtype", None)
    return array.astype(dtype, copy=False) if dtype is not None and dtype.kind == "f" else array


def without_gradients(other: Any) -> ContextManager[Any]:
    """PyTorch's no_grad for its arrays."""
    return _torch().no_grad() if is_torch(other) else contextlib.nullcontext()


def model_of(score: Any) -> Any:
    """An array of the kind that a callable takes: the first parameter of a torch.nn.Module."""
    torch = _torch()
    if torch is not None and isinstance(score, torch.nn.Module):
        return next(score.parameters(), None)
    return None
