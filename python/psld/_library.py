"""The C library: finding it, its functions, its objects and its arrays."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _c
from ._errors import BY_STATUS, ArgumentError, Error

HERE = os.path.dirname(os.path.abspath(__file__))
Path = Union[str, "os.PathLike[str]"]


def _raise_failure(status: int, function: Any, arguments: Any) -> None:
    """Checks the status of every call."""
    if status == _c.PSLD_OK:
        return
    text = _lib.psld_error_text().decode("utf-8", "replace")
    raise BY_STATUS[status if 0 < status < len(BY_STATUS) else 0](text)


def _load() -> Any:
    """The full library: the one that ``PSLD_LIBRARY`` names, or the one in this package."""
    path = os.environ.get("PSLD_LIBRARY") or os.path.join(HERE, "libpsld-full.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"psld: the C library cannot be loaded: {error}") from None
    library.psld_version.restype = ctypes.c_char_p
    version = library.psld_version().decode()
    if version.split(".")[:2] != _c.VERSION.split(".")[:2]:
        raise ImportError(f"psld: {path} is version {version}, this package is for {_c.VERSION}")
    for name, (result, parameters) in _c.FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = parameters
        if result is _c.STATUS:
            function.restype = ctypes.c_int
            function.errcheck = _raise_failure
        else:
            function.restype = result
    return library


_lib = _load()
lib = _lib


def initial(macro: str) -> Any:
    """A struct as a macro of the headers initialises it: ``initial("PSLD_SAMPLE_DEFAULTS")``."""
    kind, values = _c.INITIAL[macro]
    struct = kind(size=ctypes.sizeof(kind))
    for name, value in values.items():
        setattr(struct, name, value)
    return struct


class Handle:
    """An object of the library, freed with this one. ``keep`` are the objects that it borrows."""

    __slots__ = ("pointer", "_free", "keep", "__weakref__")

    def __init__(self, pointer: ctypes.c_void_p, free: Any, keep: Any = None) -> None:
        self.pointer = pointer
        self._free = free
        self.keep = keep

    def __del__(self) -> None:
        if self.pointer:
            self._free(self.pointer)
            self.pointer = ctypes.c_void_p()


def make(function: Any, free: Any, *arguments: Any, keep: Any = None) -> Handle:
    """Calls a function whose last parameter receives an object."""
    pointer = ctypes.c_void_p()
    function(*arguments, ctypes.byref(pointer))
    return Handle(pointer, free, keep)


def encode(text: Path) -> bytes:
    """A text or path for the library."""
    raw = os.fspath(text)
    if not isinstance(raw, str):
        raise TypeError(f"expected a text, found {type(raw).__name__}")
    encoded = os.fsencode(raw)
    if b"\0" in encoded:
        raise ArgumentError("expected a text without null characters")
    return encoded


def encode_or_none(text: Optional[Path]) -> Optional[bytes]:
    return None if text is None else encode(text)


def texts(items: Sequence[str]) -> Any:
    """A list of texts as the library takes it."""
    return (ctypes.c_char_p * max(len(items), 1))(*[encode(item) for item in items])


# ---- Arrays --------------------------------------------------------------------------------------------------------

_TYPES = {_c.PSLD_F64: "f8", _c.PSLD_F32: "f4", _c.PSLD_U8: "u1", _c.PSLD_I32: "i4", _c.PSLD_I64: "i8"}
_CODES = {np.dtype(name): code for code, name in _TYPES.items()}


def address(array: NDArray[Any]) -> int:
    """The address of the numbers of an array."""
    return int(array.__array_interface__["data"][0])


def lend(array: NDArray[Any]) -> Any:
    """A psld_array with the numbers of a NumPy array, which it keeps alive."""
    array = np.ascontiguousarray(array)
    if array.dtype not in _CODES:
        array = array.astype(np.float64)
    if array.ndim < 1 or array.ndim > _c.PSLD_MAX_RANK or array.size == 0:
        raise ArgumentError(
            f"expected an array of 1 to {_c.PSLD_MAX_RANK} axes that is not empty, " f"found the shape {array.shape}"
        )
    struct = _c.psld_array(type=_CODES[array.dtype], rank=array.ndim, count=array.size, data=address(array))
    for i, size in enumerate(array.shape):
        struct.shape[i] = size
    struct.keep = array
    return struct


def view_struct(struct: Any) -> NDArray[Any]:
    """A copy of the numbers of a psld_array."""
    array = np.empty([struct.shape[i] for i in range(struct.rank)], _TYPES[struct.type])
    ctypes.memmove(address(array), struct.data, array.nbytes)
    return array


def take(function: Any, *arguments: Any, after: Sequence[Any] = ()) -> NDArray[Any]:
    """The array that a call creates; `after` are the parameters after the one that receives it."""
    place = array_place()
    function(*arguments, ctypes.byref(place), *after)
    return receive(place)


def array_place() -> Any:
    """Where a call leaves an array for `receive`."""
    return ctypes.POINTER(_c.psld_array)()


def receive(place: Any) -> NDArray[Any]:
    try:
        return view_struct(place.contents)
    finally:
        _lib.psld_array_free(place)


def numbers(value: ArrayLike, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """The caller's numbers as an array in C order."""
    try:
        array = _arrays.to_numpy(value, name) if _arrays.is_other(value) else np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError
        return np.asarray(array, dtype, order="C")
    except (TypeError, ValueError):
        found = getattr(value, "dtype", None)
        raise ArgumentError(f"{name}: expected numbers, found {found or type(value).__name__}") from None


def finite(array: NDArray[Any], name: str) -> NDArray[Any]:
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name}: number {int(np.argmin(np.isfinite(array)))} is not finite")
    return array


# ---- The library as a whole ----------------------------------------------------------------------------------------


def version() -> str:
    """The version of the library."""
    text: str = _lib.psld_version().decode()
    return text


def threads(count: Optional[int] = None) -> int:
    """The number of threads that the library computes with; with `count` it is set first, 0 meaning one per processor.

    Results do not depend on it.

    >>> import psld
    >>> psld.threads(2)
    2
    """
    if count is not None:
        _lib.psld_threads_set(count)
    return int(_lib.psld_threads_get())


def devices() -> "list[dict[str, Any]]":
    """Devices that can compute networks, the CPU first: id (for ``Model(device=...)``), kind, name, memory, ...

    >>> import psld
    >>> psld.devices()[0]["id"]
    'cpu'
    """
    found = []
    for index in range(_lib.psld_device_count()):
        info = initial("PSLD_DEVICE_INFO_EMPTY")
        lib.psld_device_describe(index, ctypes.byref(info))
        values = {name: getattr(info, name) for name, *_ in info._fields_ if name not in ("size", "reserved")}
        found.append({name: v.decode() if isinstance(v, bytes) else v for name, v in values.items()})
    return found


def names(table: str) -> "list[str]":
    """The names of all rows of a table of the library: "sampler", "grid", "quality", "preset", ..."""
    rows = getattr(_lib, f"psld_{table}_at")
    found, index = [], 0
    while rows(index):
        found.append(rows(index).contents.name.decode())
        index += 1
    return found


def row(table: str, name: str) -> Any:
    """The row of a table by its name; an ArgumentError lists the names."""
    found = getattr(_lib, f"psld_{table}_find")(encode(name))
    if not found:
        raise ArgumentError(_lib.psld_error_text().decode())
    return found.contents


__all__ = ["Error", "Handle", "lib"]
