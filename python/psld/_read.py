"""Reads data and masks, from arrays or files."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays
from ._errors import ArgumentError, FileError, InputError
from ._library import HERE, Path, encode, finite, initial, lib, make

Given = Union[ArrayLike, Path]


def shipped(name: Path, folder: str, ending: str) -> str:
    """The path of a file, or of a model that comes with psld by its bare name: "digits"."""
    text = os.fspath(name)
    if os.path.exists(text) or os.path.dirname(text):
        return text
    for own in (os.path.join(HERE, folder), os.path.join(HERE, "..", "..", folder)):
        for candidate in (text, text + ending):
            path = os.path.join(own, candidate)
            if candidate.endswith(ending) and os.path.exists(path):
                return path
    return text


def is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def load_npy(path: Path) -> NDArray[Any]:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from None
    return np.asarray(array)


def text_of(shape: Sequence[int]) -> str:
    return " x ".join(str(size) for size in shape)


def read_data(given: Any, shape: Tuple[int, ...], name: str, fit: bool = False) -> NDArray[np.float64]:
    """Data of a model as [n, *shape]: an array of one or several, where uint8 are pixels, or a file of them."""
    if is_path(given) and not os.fspath(given).endswith(".npy"):
        return _read_pictures(given, shape, fit)
    array = load_npy(given) if is_path(given) else _arrays.to_numpy(given, name)
    if array.shape == shape:
        array = array[None]
    if array.shape[1:] != shape or array.size == 0:
        raise ArgumentError(f"{name}: expected {text_of(shape)}, one or [n, ...], found {text_of(array.shape)}")
    values = np.ascontiguousarray(array, np.float64)
    if array.dtype == np.uint8 and len(shape) == 3:
        values = values / 127.5 - 1
    return finite(values, name)


def _read_pictures(path: Path, shape: Tuple[int, ...], fit: bool) -> NDArray[np.float64]:
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise InputError(f"{os.fspath(path)}: the model takes {text_of(shape)} numbers; give them as an array or .npy")
    options = initial("PSLD_DATA_DEFAULTS")
    options.channels, options.strict = shape[0], 1
    if fit and shape[1] == shape[2]:
        options.image_size = shape[1]
    data = make(lib.psld_data_open, lib.psld_data_free, encode(path), ctypes.byref(options))
    found = data_shape(data)
    if found != shape:
        raise InputError(
            f"{os.fspath(path)}: expected pictures of {text_of(shape)}, found {text_of(found)}; "
            f"fit=True resizes them"
        )
    n = lib.psld_data_count(data.pointer)
    index, x = np.arange(n, dtype=np.uint64), np.empty((n, *shape), np.float32)
    lib.psld_data_read(data.pointer, n, index.ctypes.data, x.ctypes.data, None)
    return x.astype(np.float64)


def data_shape(data: Any) -> Tuple[int, ...]:
    sizes = (ctypes.c_size_t * 8)()
    rank = lib.psld_data_shape(data.pointer, sizes)
    return tuple(sizes[:rank])


# ---- Masks ---------------------------------------------------------------------------------------------------------


def read_masks(mask: Any, rect: Any, shape: Tuple[int, ...], images: int, fit: bool) -> NDArray[np.uint8]:
    """The known elements of so many images: uint8 [images, *shape]. White, or above 0, is unknown."""
    plane = shape[1:] if len(shape) == 3 else (math.prod(shape),)
    if (mask is None) == (rect is None):
        raise ArgumentError("the unknown part is not given; give mask or rect=(x, y, width, height)")
    if rect is not None:
        unknown, any_size = _rectangle(rect, plane), False
    elif is_path(mask) and not os.fspath(mask).endswith(".npy"):
        unknown, any_size = _mask_pictures(mask)
    else:
        array = load_npy(mask) if is_path(mask) else _arrays.to_numpy(mask, "mask")
        unknown, any_size = np.asarray(array, np.float64), False
    if unknown.ndim == len(plane):
        unknown = unknown[None]
    if unknown.ndim != len(plane) + 1 or unknown.size == 0:
        raise ArgumentError(f"mask: expected {text_of(plane)}, or [n, ...], found {text_of(unknown.shape)}")
    if unknown.shape[1:] != plane:
        if not any_size and not fit:
            raise ArgumentError(
                f"mask: expected {text_of(plane)}, found {text_of(unknown.shape[1:])}; fit=True resizes it"
            )
        for axis, size in enumerate(plane, 1):
            unknown = np.take(unknown, np.arange(size) * unknown.shape[axis] // size, axis)
    if len(unknown) != 1 and len(unknown) < images:
        raise ArgumentError(f"mask: found {len(unknown)} masks for {images} images")
    unknown = np.broadcast_to(unknown, (images, *plane)) if len(unknown) == 1 else unknown[:images]
    known = ~(unknown > 0)
    if known.all():
        raise ArgumentError("the mask is empty: nothing is unknown, so there is nothing to do")
    if len(shape) == 3:
        known = np.broadcast_to(known[:, None], (images, *shape))
    return np.ascontiguousarray(known.reshape(images, *shape), np.uint8)


def _rectangle(rect: Any, plane: Tuple[int, ...]) -> NDArray[np.float64]:
    height, width = plane if len(plane) == 2 else (1, plane[0])
    try:
        x, y, w, h = (int(number) for number in rect)
    except (TypeError, ValueError):
        raise ArgumentError(f"rect: expected four whole numbers (x, y, width, height), found {rect!r}") from None
    if min(x, y, w, h) < 0 or x + w > width or y + h > height:
        raise ArgumentError(f"rect: {rect!r} reaches beyond {height} x {width}")
    unknown = np.zeros((height, width))
    unknown[y : y + h, x : x + w] = 1
    return unknown.reshape(plane)


def _mask_pictures(path: Path) -> Tuple[NDArray[np.float64], bool]:
    """Pixels above the middle between black and white; in digits (IDX) all that are not black."""
    options = initial("PSLD_DATA_DEFAULTS")
    options.channels, options.strict = 1, 1
    data = make(lib.psld_data_open, lib.psld_data_free, encode(path), ctypes.byref(options))
    shape = data_shape(data)
    if len(shape) != 3 or not lib.psld_data_is_image(data.pointer):
        raise InputError(f"{os.fspath(path)}: expected pictures as masks")
    any_size = b"IDX" in lib.psld_data_kind(data.pointer) or "idx" in os.path.basename(os.fspath(path))
    n = lib.psld_data_count(data.pointer)
    index, pixels = np.arange(n, dtype=np.uint64), np.empty((n, *shape[1:]), np.uint8)
    lib.psld_data_read_u8(data.pointer, n, index.ctypes.data, pixels.ctypes.data, None)
    return pixels.astype(np.float64) - (0 if any_size else 127), any_size
