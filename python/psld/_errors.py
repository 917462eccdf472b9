"""Exceptions: a class for each status of the library."""

from __future__ import annotations

__all__ = ["ArgumentError", "Cancelled", "DeviceFailed", "Error", "FileError", "InputError", "NoMemory", "NotFinite"]


class Error(Exception):
    """An error of psld. Its text is one line: what is wrong, where, and what was expected."""


class NoMemory(Error, MemoryError):
    """An allocation failed."""


class ArgumentError(Error, ValueError):
    """An argument is outside its range."""


class InputError(Error, ValueError):
    """A file or a text has wrong contents."""


class FileError(Error, OSError):
    """A file cannot be opened, read or written."""


class Cancelled(Error):
    """``progress`` asked to stop."""


class NotFinite(Error, ArithmeticError):
    """A computation gave infinity or not-a-number."""


class DeviceFailed(Error):
    """A device is not there, cannot compute this, or was lost."""


# By psld_status.
BY_STATUS = (Error, NoMemory, ArgumentError, InputError, FileError, Cancelled, NotFinite, DeviceFailed)
for _error in BY_STATUS:
    _error.__module__ = "psld"  # where everybody finds them
