"""Calls that take long: progress, Ctrl-C, and exceptions of callbacks.

The library calls back into Python. Exceptions cannot pass through C: they are kept, the library is told to stop,
and the exception is raised unchanged when the library has returned.

A signal needs more care. Python runs the handler of a signal before the first line of a callback, outside any `try`,
and there ctypes would print what it raises and go on. So while the library computes in the main thread, handlers are
replaced by one that only notes the signal; the next callback runs the true handler where its exception is caught.
"""

from __future__ import annotations

import importlib
import itertools
import signal
import sys
import threading
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _c
from ._errors import Cancelled, Error

Progress = Union[bool, Callable[[int, int], Any], None]

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]
_MAIN = threading.main_thread()
_local = threading.local()
_calls: Dict[int, "Call"] = {}
_numbers = itertools.count(1)


class Call:
    """One call of the library from one thread. `key` is what callbacks get as their user pointer."""

    def __init__(self, progress: Progress = None) -> None:
        self.key = next(_numbers)
        self.error: Optional[BaseException] = None
        self._watch = _watcher(progress)
        self._handlers: Dict[int, Any] = {}
        self._pending: List[Tuple[int, Optional[FrameType]]] = []
        self._catching = False
        self._in_main = threading.current_thread() is _MAIN

    @property
    def progress(self) -> Any:
        """For psld_progress_fn: NULL if no progress is shown and no signal is watched."""
        return PROGRESS if self._in_main or self._watch else _c.psld_progress_fn()

    # ---- The call itself -------------------------------------------------------------------------------------------

    def run(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Calls a function of the library, and raises what a callback raised."""
        stack = _stack()
        stack.append(self)
        _calls[self.key] = self
        self._defer_signals()
        try:
            function(*arguments)
        except Error:
            if self.error is None:
                raise
        finally:
            self._restore_signals()
            del _calls[self.key]
            stack.pop()
            if self._watch is not None:
                self._watch.close()
            if self.error is None:
                self._deliver()
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def catch(self, function: Callable[..., Any], *arguments: Any) -> bool:
        """Runs what a callback has to do; False if it, or a handler of a signal, raised."""
        if self.error is not None:
            return False
        try:
            self._catching = True
            if self._pending:
                self._deliver()
            function(*arguments)
            self._catching = False
            return True
        except BaseException as error:
            self._catching = False
            self.error = error
            return False

    def report(self, done: int, total: int) -> None:
        if self._watch is not None:
            self._watch.show(done, total)

    # ---- Signals ---------------------------------------------------------------------------------------------------

    def _defer_signals(self) -> None:
        if not self._in_main:
            return
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def _restore_signals(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        if self._catching:
            self._catching = False
            self._handlers[number](number, frame)
            self._catching = True
        else:
            self._pending.append((number, frame))

    def _deliver(self) -> None:
        while self._pending:
            number, frame = self._pending.pop(0)
            self._handlers[number](number, frame)


def _stack() -> "List[Call]":
    try:
        stack: List[Call] = _local.stack
    except AttributeError:
        stack = _local.stack = []
    return stack


def current() -> Call:
    """The innermost call of this thread."""
    return _stack()[-1]


def _on_progress(user: int, done: int, total: int) -> int:
    call = _calls[user]
    return 0 if call.catch(call.report, done, total) else 1


PROGRESS = _c.psld_progress_fn(_on_progress)


# ---- Display of progress -------------------------------------------------------------------------------------


class _Callable:
    def __init__(self, function: Callable[[int, int], Any]) -> None:
        self._function = function

    def show(self, done: int, total: int) -> None:
        if self._function(done, total):
            raise Cancelled("progress asked to stop")

    def close(self) -> None:
        pass


class _Bar:
    """A bar of tqdm."""

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(total=100, bar_format="{l_bar}{bar}| {elapsed}<{remaining}", leave=False)

    def show(self, done: int, total: int) -> None:
        self._bar.update(100 * done / max(total, 1) - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _Line:
    """A line of text, where tqdm is not installed."""

    def __init__(self) -> None:
        self._shown = -1

    def show(self, done: int, total: int) -> None:
        percent = 100 * done // max(total, 1)
        if percent != self._shown:
            self._shown = percent
            print(f"\r{percent:3d} %", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print("\r     \r", end="", file=sys.stderr, flush=True)


def _watcher(progress: Progress) -> Any:
    if progress is None or progress is False:
        return None
    if callable(progress):
        return _Callable(progress)
    try:
        return _Bar(importlib.import_module("tqdm.auto").tqdm)
    except ImportError:
        return _Line()
