"""Pictures: what notebooks display."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Mapping, Optional, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _c
from ._errors import ArgumentError
from ._library import Path, address, encode, lend, lib, take


class Picture:
    """A picture that shows itself in a notebook: a PNG or an SVG."""

    def __init__(self, png: Optional[bytes] = None, svg: Optional[str] = None) -> None:
        self.png = png
        self.svg = svg

    def _repr_png_(self) -> Optional[bytes]:
        return self.png

    def _repr_svg_(self) -> Optional[str]:
        return self.svg

    def save(self, path: Path) -> None:
        """Writes it as it is: the name must end in .png, or .svg."""
        ending = ".png" if self.png is not None else ".svg"
        if not os.fspath(path).endswith(ending):
            raise ArgumentError(f"save: expected a name that ends in {ending}, found {os.fspath(path)}")
        with open(path, "wb") as file:
            file.write(self.png if self.png is not None else (self.svg or "").encode())

    def __repr__(self) -> str:
        return f"<psld.Picture, {'PNG' if self.png is not None else 'SVG'}>"


def to_pixels(x: ArrayLike, quantize: str = "round") -> NDArray[np.uint8]:
    """Data in [-1, 1] as pixels: (v + 1) 127.5, rounded, or cut off with "floor"; what lies outside is 0 or 255.

    >>> import psld
    >>> psld.to_pixels([-1, 0, 2])
    array([  0, 128, 255], dtype=uint8)
    """
    if quantize not in ("round", "floor"):
        raise ArgumentError(f"quantize: expected round or floor, found {quantize!r}")
    array = _arrays.to_numpy(x, "x").astype(np.float32)
    return take(lib.psld_images_from_data, lend(array), int(quantize == "floor"))


def show(images: Any, columns: int = 0, zoom: int = 1) -> Picture:
    """A grid of images, for a notebook or ``.save("name.png")``.

    `images` are [n, channels, height, width], or one of them, with 1 or 3 channels: pixels (uint8) or data in [-1, 1].
    `columns` images stand beside each other (0: as nearly square as can be), and `zoom` enlarges pixels.

    >>> import numpy, psld
    >>> psld.show(numpy.zeros((6, 1, 8, 8)))
    <psld.Picture, PNG>
    """
    array = _arrays.to_numpy(images, "images")
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[1] not in (1, 3) or array.size == 0:
        raise ArgumentError(f"images: expected [n, channels, height, width] with 1 or 3 channels, found {array.shape}")
    pixels = array if array.dtype == np.uint8 else to_pixels(array)
    if zoom != 1:
        pixels = take(lib.psld_images_enlarge, lend(pixels), zoom)
    return Picture(png=_encode(_sheet(pixels, columns)))


def _sheet(pixels: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """One image of many, row by row."""
    n, channels, height, width = pixels.shape
    if columns < 1:
        columns = int(np.ceil(np.sqrt(n)))
    rows = -(-n // columns)
    sheet = np.zeros((rows * columns, channels, height, width), np.uint8)
    sheet[:n] = pixels
    sheet = sheet.reshape(rows, columns, channels, height, width)
    return sheet.transpose(2, 0, 3, 1, 4).reshape(channels, rows * height, columns * width)


def _encode(image: NDArray[np.uint8]) -> bytes:
    place, size = ctypes.c_void_p(), ctypes.c_size_t()
    lib.psld_image_encode(lend(image), ctypes.byref(place), ctypes.byref(size))
    try:
        return ctypes.string_at(place, size.value)
    finally:
        lib.psld_bytes_free(place)


def plot_points(points: Any, mixture: Any = None, title: str = "") -> Picture:
    """Points [n, 2] in the plane, over the density of a :class:`psld.Mixture` if one is given.

    >>> import numpy, psld
    >>> psld.plot_points(numpy.zeros((5, 2)))
    <psld.Picture, SVG>
    """
    array = np.ascontiguousarray(_arrays.to_numpy(points, "points"), np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or not array.size:
        raise ArgumentError(f"points: expected [n, 2], found {array.shape}")
    density = mixture._handle.pointer if mixture is not None else None
    return _svg(lib.psld_plot_points, density, address(array), len(array), title.encode())


def plot_curves(
    curves: Mapping[str, Tuple[ArrayLike, ArrayLike]],
    *,
    title: str = "",
    x: str = "",
    y: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> Picture:
    """Curves by their labels, each of (x, y), in one frame.

    >>> import psld
    >>> psld.plot_curves({"square": ([0, 1, 2], [0, 1, 4])}, x="x", y="x^2")
    <psld.Picture, SVG>
    """
    structs, keep = (_c.psld_curve * len(curves))(), []
    for i, (label, (xs, ys)) in enumerate(curves.items()):
        pair = [np.ascontiguousarray(_arrays.to_numpy(values, label), np.float64).ravel() for values in (xs, ys)]
        if len(pair[0]) != len(pair[1]):
            raise ArgumentError(f"{label}: {len(pair[0])} numbers of x for {len(pair[1])} of y")
        keep.append((label.encode(), pair))
        structs[i] = _c.psld_curve(
            label=keep[i][0], count=len(pair[0]), x=address(pair[0]), y=address(pair[1]), colour=i
        )
    return _svg(
        lib.psld_plot_curves, title.encode(), x.encode(), y.encode(), int(log_x), int(log_y), structs, len(curves)
    )


def _svg(function: Any, *arguments: Any) -> Picture:
    """The picture of a function of the library that writes a file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plot.svg")
        function(*arguments, encode(path))
        with open(path, encoding="utf-8") as file:
            return Picture(svg=file.read())


def load_image(path: Path) -> NDArray[np.uint8]:
    """A picture (PNG, JPEG, WebP) as pixels [channels, height, width], with 1 or 3 channels."""
    return take(lib.psld_image_load, encode(path))
