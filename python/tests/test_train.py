"""Training as the command does it, and evaluation of arrays and of files."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import psld

KEYS = {"train.steps": 6, "model.nf": 8, "train.sample_every": 0, "train.evaluate_every": 2, "train.batch": 16}
WORDS = [f"{key}={value}" for key, value in KEYS.items()]


def test_steps_are_those_of_the_program(program, tmp_path):
    program("train", "toy:moons", "-o", "theirs", *WORDS)
    steps = list(psld.train(data="toy:moons", out=tmp_path / "ours", overrides=KEYS))
    assert [step.step for step in steps] == list(range(1, 7)) and all(step.steps == 6 for step in steps)
    with open(os.path.join(program.folder, "theirs", "log.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    log = psld.Run(tmp_path / "ours").log()
    for name in ("step", "loss", "norm", "rate"):
        assert np.array_equal(log[name], [line[name] for line in lines])
    assert np.allclose([step.loss for step in steps], log["loss"], rtol=1e-8)
    assert np.array_equal(np.isnan(log["held_out"]), [i % 2 == 0 for i in range(6)])
    assert log["loss_by_t"].shape == (6, 10)
    a, b = (psld.Model(folder).sample(20, nfe=5) for folder in (tmp_path / "ours", program.folder + "/theirs"))
    assert np.array_equal(a, b)


def test_a_run_goes_on_bit_for_bit(tmp_path):
    whole = [step.loss for step in psld.train(data="toy:moons", out=tmp_path / "whole", overrides=KEYS)]
    first = []
    for step in psld.train(data="toy:moons", out=tmp_path / "parts", overrides=KEYS):
        first.append(step.loss)
        if step.step == 4:
            break
    run = psld.Run(tmp_path / "parts")
    assert run.info()["saved"] == 4 and not run.info()["running"] and run.checkpoints[-1].endswith("4.safetensors")
    rest = [step.loss for step in psld.train(out=tmp_path / "parts")]
    assert first + rest == whole
    assert list(psld.train(out=tmp_path / "parts")) == []  # it is finished
    assert len(list(psld.train(out=tmp_path / "parts", overrides={"train.steps": 8}))) == 2
    assert run.model().sample(3, nfe=3).shape == (3, 2) and "steps: 8" in run.config
    assert "step 8 of 8" in repr(run)


def test_an_exception_in_the_loop_leaves_a_checkpoint(tmp_path):
    with pytest.raises(KeyError):
        for step in psld.train(data="toy:moons", out=tmp_path / "run", overrides=KEYS):
            if step.step == 3:
                raise KeyError
    import gc

    gc.collect()
    assert psld.Run(tmp_path / "run").info()["saved"] == 3


def test_wrong_trainings_are_refused(tmp_path):
    for call, says in [
        (lambda: psld.train(), "expected"),
        (lambda: psld.train(data="toy:moon", out=tmp_path / "a"), "moon"),
        (lambda: psld.train(data="toy:moons", out=tmp_path / "a", overrides={"train.step": 3}), "train.step"),
        (lambda: psld.train(data="toy:moons", out=tmp_path / "a", time="soon"), "soon"),
        (lambda: psld.Run(tmp_path / "none"), "none"),
    ]:
        with pytest.raises(psld.Error, match=says):
            call()
    assert not os.path.exists(tmp_path / "a")


# ---- Evaluation ----------------------------------------------------------------------------------------------------


def features(n=1200, dim=6, shift=0.0, seed=0):
    return (np.random.default_rng(seed).normal(size=(n, dim)) @ np.diag(np.arange(1, dim + 1)) + shift).astype(
        np.float32
    )


def test_frechet_distance_of_gaussians():
    a, b = features(), features(shift=0.5, seed=1)
    ma, mb = (x.mean(0, dtype=np.float64) for x in (a, b))
    ca, cb = (np.cov(x.T.astype(np.float64)) for x in (a, b))
    root = np.linalg.cholesky(ca)
    middle = np.sqrt(np.linalg.eigvalsh(root.T @ cb @ root)).sum()
    assert np.isclose(psld.frechet(a, b), np.sum((ma - mb) ** 2) + np.trace(ca) + np.trace(cb) - 2 * middle, rtol=1e-9)


def test_metrics_are_those_of_the_program(program):
    a, b = features(), features(shift=0.5, seed=1)
    for name, rows in (("a", a), ("b", b)):
        np.save(os.path.join(program.folder, name + ".npy"), rows)
    told = json.loads(program("eval", "a.npy", "b.npy", "--metric", "fid,kid,prc,swd", "--kid-size", 500, "--json"))
    found = psld.evaluate(a, os.path.join(program.folder, "b.npy"), metric=["fid", "kid", "prc", "swd"], kid_size=500)
    names = {
        "fid": "fid",
        "frechet": "fid",
        "kid": "kid",
        "precision": "precision",
        "recall": "recall",
        "swd": "sliced_wasserstein",
    }
    compared = [key for key in told if key in names]
    assert len(compared) >= 5
    for key in compared:
        assert getattr(found, names[key]) == told[key], key
    assert found.samples == (1200, 1200) and found.inception_score is None
    assert np.isclose(psld.frechet(a, b), found.fid, rtol=1e-12)
    assert np.isclose(psld.kid(a, b, subset_size=500)[0], found.kid, rtol=1e-12)
    assert psld.precision_recall(a, b) == (found.precision, found.recall)
    assert np.isclose(psld.sliced_wasserstein(a, b), found.sliced_wasserstein, rtol=1e-6)


def test_inception_score_of_certain_classes():
    logits = np.full((1000, 4), -50.0)
    logits[np.arange(1000), np.arange(1000) % 4] = 50
    assert np.isclose(psld.inception_score(logits, splits=5, shuffle=False)[0], 4, rtol=1e-6)


def test_images_are_compared_by_features(digits):
    weights = psld.Features("digits-classifier")
    a, b = (psld.to_pixels(digits.sample(12, nfe=4, seed=seed)) for seed in (0, 1))
    rows = weights(a)
    assert rows.shape == (12, weights.dim) and weights.logits(a).shape == (12, 10) and not weights.is_fid
    assert np.isclose(psld.evaluate(a, b, weights=weights).fid, psld.frechet(rows, weights(b)), rtol=1e-5, atol=1e-5)
    with pytest.raises(psld.Error):
        psld.evaluate(a, b)
    with pytest.raises(psld.ArgumentError, match="uint8"):
        weights(a.astype(float))


WITHOUT = """
import numpy, psld
a = numpy.random.default_rng(0).normal(size=(1200, 6)).astype("float32")
b = numpy.random.default_rng(1).normal(size=(1200, 6)).astype("float32") * 1.5
print(repr([psld.frechet(a, b), *psld.kid(a, b, subset_size=300), *psld.precision_recall(a[:300], b[:300])]))
"""


def test_without_openblas_the_algebra_is_that_of_numpy(tmp_path):
    """A library that cannot be loaded stands before the true one."""

    def results(**more):
        out = subprocess.run(
            [sys.executable, "-c", WITHOUT], stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **more}
        ).stdout
        return np.array(eval(out))

    for name in ("libopenblas.so.0", "libopenblas.so"):
        (tmp_path / name).write_bytes(b"no library")
    without = results(LD_LIBRARY_PATH=str(tmp_path))
    assert np.allclose(without, results(), rtol=1e-9, atol=1e-12)


def test_wrong_sets_are_refused():
    a = features(50)
    for call, says in [
        (lambda: psld.frechet(a, a[:, :3]), "3"),
        (lambda: psld.frechet(a[0], a), "shape"),
        (lambda: psld.kid(a, a), "1000 images"),
        (lambda: psld.sliced_wasserstein(a, a[:, :2]), "2"),
        (lambda: psld.evaluate(a, a, metric="fud"), "fud"),
        (lambda: psld.evaluate("no/such", a), "no/such"),
        (lambda: psld.frechet("a", a), "str"),
    ]:
        with pytest.raises(psld.Error, match=says):
            call()
