"""Training, and what runs have written."""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

import numpy as np
from numpy.typing import NDArray

from . import _c
from ._errors import ArgumentError, FileError
from ._library import Handle, Path, encode, encode_or_none, initial, lib, make, texts
from ._model import Model, _overrides
from ._options import number
from ._read import shipped


class Step(NamedTuple):
    """What a step of training reports; NaN is what was not measured after it."""

    step: int
    steps: int
    samples: int
    loss: float
    norm: float
    rate: float
    seconds: float
    held_out: float
    accuracy: float
    held_out_raw: float
    metric: float


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _seconds(time: Union[str, float]) -> float:
    if not isinstance(time, str):
        return float(number("time", time, float, False))
    match = re.fullmatch(r"([0-9.]+)([smhd]?)", time.strip())
    if not match:
        raise ArgumentError(f"time: expected seconds, or a text as 30m, 2h or 1d, found {time!r}")
    return float(match[1]) * _UNITS[match[2]]


class Training:
    """A run that is open: an iterator over its steps. See :func:`psld.train`."""

    def __init__(self, handle: Handle, out: Optional[Path]) -> None:
        self._handle = handle
        self._out = out
        self._saved = self.step

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return int(lib.psld_training_steps(self._pointer))

    @property
    def _pointer(self) -> Any:
        if not self._handle.pointer:
            raise ArgumentError("training: it is closed")
        return self._handle.pointer

    @property
    def config(self) -> str:
        """The configuration with every key, as YAML."""
        text: str = lib.psld_training_config(self._pointer).decode()
        return text

    @property
    def reasons(self) -> str:
        """Why a network and its steps were chosen so, a line each."""
        text: str = lib.psld_training_reasons(self._pointer).decode()
        return text

    def __iter__(self) -> Iterator[Step]:
        report = initial("PSLD_TRAINING_REPORT_EMPTY")
        try:
            while True:
                if report.step and report.step >= report.steps:
                    return
                if not report.step and self._is_finished():
                    return
                lib.psld_training_step(self._pointer, ctypes.byref(report))
                if report.step == report.steps:
                    self._saved = report.step  # the last step saves by itself
                yield Step(*(getattr(report, name) for name in Step._fields))
        finally:
            self._save_rest()

    def _is_finished(self) -> bool:
        if self._out is None or not self.step:
            return False
        info = initial("PSLD_RUN_INFO_EMPTY")
        lib.psld_run_inspect(encode(self._out), ctypes.byref(info))
        return bool(self.step >= info.steps)

    def _save_rest(self) -> None:
        if self._handle.pointer and self.step != self._saved and self._out is not None:
            self.save()

    def save(self) -> None:
        """Writes a checkpoint and model.safetensors now."""
        lib.psld_training_save(self._pointer)
        self._saved = self.step

    def close(self) -> None:
        """Lets go of the run; what was not saved is lost."""
        self._handle.__del__()

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *error: Any) -> None:
        self._save_rest()
        self.close()


def train(
    config: Optional[Path] = None,
    *,
    data: Optional[Path] = None,
    out: Optional[Path] = None,
    overrides: Any = None,
    init: Optional[Path] = None,
    classifier: bool = False,
    clean: bool = False,
    time: Union[str, float, None] = None,
    isa: Optional[str] = None,
    device: Optional[str] = None,
) -> Training:
    """Trains a network in the folder `out`, or goes on with the run that is there: an iterator over steps.

    `config` is a file, or the name of a configuration that comes with psld; with `data` alone (a folder or archive of
    images, .npy, "toy:moons", ...) a network is chosen for it. `overrides` are keys of the configuration:
    ``{"train.steps": 1000}``. `init` is a model to start from, `classifier` trains a classifier of noisy data
    (`clean`: of clean data), `time` is how long it may take ("30m", or seconds), `isa` the instruction set, `device`
    where it is computed (as of :class:`Model`).

    Steps and checkpoints are those of ``psld train``. A loop that is left early leaves a checkpoint; the same call
    goes on after it, bit for bit as if it had never stopped. Without `out` nothing is written.

    >>> import psld, tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     steps = [step for step in psld.train(data="toy:moons", out=run, overrides={"train.steps": 3, "model.nf": 8,
    ...                                                                                "train.sample_every": 0})]
    ...     log = psld.Run(run).log()
    >>> [step.step for step in steps], log["step"]
    ([1, 2, 3], array([1, 2, 3]))
    """
    words = _overrides(overrides) + (["train.clean=true"] if clean else [])
    if config is None and data is None and out is None:
        raise ArgumentError("train: expected a configuration, data, or the folder of a run to go on with")
    o = initial("PSLD_TRAINING_DEFAULTS")
    o.config = encode_or_none(None if config is None else shipped(config, "configs", ".yaml"))
    o.data, o.init = encode_or_none(data), encode_or_none(init)
    o.overrides, o.override_count = texts(words), len(words)
    o.classifier = int(classifier)
    o.metric = lib.psld_training_distance()
    o.isa, o.device = encode_or_none(isa), encode_or_none(device)
    if time is not None:
        o.seconds = _seconds(time)
    handle = make(lib.psld_training_open, lib.psld_training_free, encode_or_none(out), ctypes.byref(o))
    return Training(handle, out)


def tune(
    model: Path,
    *,
    data: Optional[Path] = None,
    out: Optional[Path] = None,
    overrides: Any = None,
    time: Union[str, float, None] = None,
    isa: Optional[str] = None,
    device: Optional[str] = None,
) -> Training:
    """Tunes a trained model for one to four evaluations, as ``psld tune MODEL --consistency`` does.

    `model` is a run, a model file, or the name of a model that comes with psld; `data` are those of its configuration
    unless others are given. The rest is as in :func:`train`. A model of the run draws with the sampler consistency:
    ``psld.Run(out).model().sample(64, nfe=1)``.
    """
    words = _overrides(overrides)
    o = initial("PSLD_TRAINING_DEFAULTS")
    o.tune, o.data = encode_or_none(shipped(model, "models", ".safetensors")), encode_or_none(data)
    o.overrides, o.override_count = texts(words), len(words)
    o.metric = lib.psld_training_distance()
    o.isa, o.device = encode_or_none(isa), encode_or_none(device)
    if time is not None:
        o.seconds = _seconds(time)
    handle = make(lib.psld_training_open, lib.psld_training_free, encode_or_none(out), ctypes.byref(o))
    return Training(handle, out)


class Run:
    """The folder of a training run: one that is being trained in may be looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder: str = os.fspath(folder)
        self.info()

    def __repr__(self) -> str:
        info = self.info()
        return f"<psld.Run {self.folder}: step {info['step']} of {info['steps']}, loss {info['loss']:.4g}>"

    def info(self) -> Dict[str, Any]:
        """Step, steps, checkpoints, mean of the last losses, seconds, and whether a process is training in it."""
        found = initial("PSLD_RUN_INFO_EMPTY")
        lib.psld_run_inspect(encode(self.folder), ctypes.byref(found))
        flags = ("running", "classifier")
        return {
            name: bool(getattr(found, name)) if name in flags else getattr(found, name)
            for name, *_ in _c.psld_run_info._fields_
            if name != "size"
        }

    def log(self) -> Dict[str, NDArray[Any]]:
        """The log as arrays by name: step, loss, norm, rate, seconds, and what was measured (held_out, loss_by_t, ...).

        What a line does not have is NaN.
        """
        lines = []
        try:
            with open(os.path.join(self.folder, "log.jsonl"), encoding="utf-8") as file:
                for line in file:
                    with _ignore_damage():
                        lines.append(json.loads(line))
        except OSError as error:
            raise FileError(f"{self.folder}/log.jsonl: {error.strerror}") from None
        names = dict.fromkeys(name for line in lines for name in line)
        return {name: _column([line.get(name) for line in lines]) for name in names}

    def model(self, **options: Any) -> Model:
        """Its model: the averaged weights of the last checkpoint; keywords as of :class:`psld.Model`."""
        return Model(self.folder, **options)

    @property
    def config(self) -> str:
        """The configuration with every key, as YAML."""
        with open(os.path.join(self.folder, "config.yaml"), encoding="utf-8") as file:
            return file.read()

    @property
    def checkpoints(self) -> List[str]:
        """Files of the checkpoints, by step."""
        return self._steps("checkpoints", ".safetensors")

    @property
    def samples(self) -> List[str]:
        """Files of the pictures that were drawn, by step."""
        return self._steps("samples", ".png")

    def _steps(self, folder: str, ending: str) -> List[str]:
        files = glob.glob(os.path.join(glob.escape(self.folder), folder, "step-*" + ending))
        return sorted(files, key=lambda name: int(re.sub(r"\D", "", os.path.basename(name)) or 0))

    def stop(self) -> None:
        """Asks the ``psld train`` that runs in it to stop after its step, with a checkpoint."""
        lib.psld_run_stop(encode(self.folder))


class _ignore_damage:
    """A line of a log that was cut off is left out, as the library does."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return isinstance(error, ValueError)


def _column(values: List[Any]) -> NDArray[Any]:
    lists = [value for value in values if isinstance(value, list)]
    if lists:
        empty = [None] * len(lists[0])
        return np.array([value if isinstance(value, list) else empty for value in values], np.float64)
    if all(isinstance(value, int) for value in values):
        return np.array(values)
    return np.array([np.nan if value is None else value for value in values], np.float64)
