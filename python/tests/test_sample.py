"""Sampling from scores of any kind, and what can go wrong in them."""

import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import psld
from conftest import ROOT

RING = os.path.join(ROOT, "examples", "ring.yaml")
SAMPLERS = ["em", "sscs", "ode", "dpm", "ancestral"]
MEANS = 1.2 * np.stack([np.cos(np.arange(8) * np.pi / 4), np.sin(np.arange(8) * np.pi / 4)], 1)


def some(sampler):
    return {} if sampler == "ode" else {"nfe": 20}


def words(sampler):
    return [] if sampler == "ode" else ["--nfe", "20"]


def mixture_score(recipe, means=MEANS, scale=0.12):
    """The score of a mixture as anybody would write it with NumPy: the gradient of log p_t by all of z."""
    kernels = {}

    def score(z, t):
        if t[0] not in kernels:
            kernel = recipe.kernel(t[0])
            mu = kernel.mean[:, 0]
            cov = kernel.cov + scale**2 * np.outer(mu, mu)
            kernels[t[0]] = mu, np.linalg.inv(cov)
        mu, precision = kernels[t[0]]
        d = z.reshape(len(z), 1, recipe.k, -1) - mu[:, None] * means[:, None]
        pull = np.einsum("ab,ncbj->ncaj", precision, d)
        logits = -0.5 * np.einsum("ncaj,ncaj->nc", d, pull)
        weight = np.exp(logits - logits.max(1, keepdims=True))
        weight /= weight.sum(1, keepdims=True)
        full = -np.einsum("nc,ncaj->naj", weight, pull)
        return full[:, recipe.predicted].reshape(len(z), -1)

    return score


@pytest.mark.parametrize("sampler", SAMPLERS + ["heun", "collapsed", "collapsed-heun", "euler-ode"])
def test_the_exact_source_through_a_callback_gives_the_bits_of_the_program(program, ring, sampler):
    expected = program.array("sample", RING, "-n", 300, "--sampler", sampler, "--seed", 3, *words(sampler))
    source = ring.source
    calls = []

    def callback(z, t):
        calls.append(len(z))
        return source(z, t)

    found = psld.sample(ring.recipe, callback, 2, n=300, sampler=sampler, seed=3, **some(sampler))
    assert calls and found.dtype == np.float32 and np.array_equal(found, expected)
    assert np.array_equal(
        psld.sample(ring.recipe, source, 2, n=300, sampler=sampler, seed=3, **some(sampler)), expected
    )


@pytest.mark.parametrize(
    "sampler, text",
    [
        ("ode", "psld gamma=0.02"),
        *(
            (sampler, text)
            for sampler in SAMPLERS
            if sampler != "ode"
            for text in ("vp", "cld", "psld gamma=0.02", "told")
        ),
    ],
)
def test_a_formula_in_numpy_gives_the_samples_of_the_program(program, sampler, text):
    recipe = psld.Recipe(text)
    score = mixture_score(recipe)

    def one_time(z, t):  # ode asks for groups at times of their own
        if np.all(t == t[0]):
            return score(z, t)
        out = np.empty((len(z), len(recipe.predicted) * 2))
        for time in np.unique(t):
            out[t == time] = score(z[t == time], t[t == time])
        return out

    expected = program.array(
        "sample", RING, "-n", 100, "--process", text, "--sampler", sampler, "--seed", 1, *words(sampler)
    )
    found = psld.sample(recipe, one_time, 2, n=100, sampler=sampler, seed=1, predicts="score", **some(sampler))
    scale = np.ptp(expected) * (1e-3 if sampler == "ode" else 1e-6)
    assert np.abs(found - expected).max() <= scale


@pytest.mark.parametrize("predicts", ["eps", "score", "data"])
def test_what_is_predicted_makes_no_difference(ring, predicts):
    source, recipe = ring.source, ring.recipe
    forms = {
        "eps": source,
        "data": source.denoise,
        "score": lambda z, t: recipe.convert(source(z, t), t, given="eps", to="score"),
    }
    expected = psld.sample(recipe, source, 2, n=50, sampler="dpm", nfe=15)
    found = psld.sample(recipe, lambda z, t: forms[predicts](z, t), 2, n=50, sampler="dpm", nfe=15, predicts=predicts)
    assert np.abs(found - expected).max() < 1e-5


def test_options_are_those_of_the_program(program, ring):
    def both(*more, **options):
        return (
            program.array("sample", RING, "-n", 64, *more),
            psld.sample(ring.recipe, ring.source, 2, n=64, **options),
        )

    for expected, found in [
        both(),
        both("--quality", "draft", "--seed", 5, quality="draft", seed=5),
        both("--nfe", 12, "--eta", 0.3, "--grid", "rho", "--rho", 5, nfe=12, eta=0.3, grid="rho", rho=5),
        both("--grid", "1,0.5,0.1,0.01", grid=[1, 0.5, 0.1, 0.01]),
        both(
            "--sampler",
            "sscs",
            "--nfe",
            9,
            "--no-denoise",
            "--eps",
            0.01,
            sampler="sscs",
            nfe=9,
            no_denoise=True,
            eps=0.01,
        ),
        both(
            "--sampler",
            "em",
            "--nfe",
            20,
            "--corrector",
            1,
            "--corrector-size",
            0.1,
            "--end-sigma",
            0.05,
            sampler="em",
            nfe=20,
            corrector=1,
            corrector_size=0.1,
            end_sigma=0.05,
        ),
        both(
            "--sampler",
            "collapsed",
            "--nfe",
            9,
            "--order",
            2,
            "--detail",
            0.1,
            sampler="collapsed",
            nfe=9,
            order=2,
            detail=0.1,
        ),
        both("--sampler", "ode", "--tol", 1e-3, "--ode-group", 8, sampler="ode", tol=1e-3, ode_group=8),
        both("--clip", 1, "--threshold", 0.9, "--nfe", 9, clip=1, threshold=0.9, nfe=9),
        both("--nfe", 9, "--state", nfe=9, state=True),
    ]:
        assert np.array_equal(found, expected)


def test_results_do_not_depend_on_batches_and_beginnings(ring):
    whole = psld.sample(ring.recipe, lambda z, t: ring.source(z, t), 2, n=40, nfe=8, dtype=np.float64)
    parts = psld.sample(ring.recipe, lambda z, t: ring.source(z, t), 2, n=40, nfe=8, batch=7, dtype=np.float64)
    later = psld.sample(ring.recipe, lambda z, t: ring.source(z, t), 2, n=30, first=10, nfe=8, dtype=np.float64)
    assert whole.dtype == np.float64 and np.array_equal(whole, parts) and np.array_equal(whole[10:], later)


def test_samples_can_have_any_shape_and_start():
    recipe = psld.Recipe("psld gamma=0.02")
    seen = []

    def score(z, t):
        seen.append((z.shape, t.shape, z.flags.writeable))
        return np.zeros((len(z), 6, 4, 5))

    x = psld.sample(recipe, score, (3, 4, 5), n=2, nfe=3, state=True)
    assert x.shape == (2, 6, 4, 5) and seen[0][:2] == ((2, 6, 4, 5), (2,))
    start = np.random.default_rng(0).normal(size=(2, 6, 4, 5))
    a, b = (psld.sample(recipe, score, (3, 4, 5), n=2, nfe=3, start=s, seed=1) for s in (start, start + 1))
    assert not np.array_equal(a, b)
    with pytest.raises(psld.ArgumentError, match="start"):
        psld.sample(recipe, score, (3, 4, 5), n=3, nfe=3, start=start)


def test_arrays_that_the_score_keeps_stay_valid(ring):
    kept = []

    def score(z, t):
        kept.append((z, t))
        return ring.source(z, t)

    psld.sample(ring.recipe, score, 2, n=500, nfe=6)
    gc.collect()
    assert all(np.isfinite(z).all() and np.isfinite(t).all() for z, t in kept)


def test_labels_reach_the_score():
    mixture = psld.Mixture([[-1, 0], [1, 0], [0, 1]], 0.2, label=[0, 1, 1])
    recipe = psld.Recipe("vp")
    source, seen = mixture.source(recipe), set()

    def score(z, t, label):
        seen.update(label.tolist())
        return source(z, t, label)

    labels = [0, 1] * 20
    found = psld.sample(recipe, score, 2, n=40, labels=labels, nfe=20)
    assert seen == {0, 1} and np.all(found[::2, 0] < -0.2) and np.all(found[1::2, 0] > -0.8)
    assert np.array_equal(found, psld.sample(recipe, source, 2, n=40, labels=labels, nfe=20))
    guided = psld.sample(recipe, score, 2, n=40, labels=labels, cfg=3, nfe=20)
    assert seen == {-1, 0, 1} and not np.array_equal(found, guided)
    assert np.array_equal(guided, psld.sample(recipe, source, 2, n=40, labels=labels, cfg=3, nfe=20))
    limited = psld.sample(recipe, score, 2, n=40, labels=labels, cfg=3, cfg_range=(0.1, 1), nfe=20)
    assert not np.array_equal(limited, guided)


# ---- What goes wrong in a score ------------------------------------------------------------------------------------


class Surprise(Exception):
    pass


@pytest.mark.parametrize("sampler", ["em", "ode", "ancestral"])
def test_exceptions_come_out_unchanged(ring, sampler):
    error = Surprise("no")

    def score(z, t):
        raise error

    with pytest.raises(Surprise) as caught:
        psld.sample(ring.recipe, score, 2, n=10, sampler=sampler)
    assert caught.value is error and caught.traceback[-1].name == "score"
    assert psld.sample(ring.recipe, ring.source, 2, n=3, nfe=3).shape == (3, 2)


@pytest.mark.parametrize(
    "answer, says",
    [
        (lambda z: z[:, :2], r"expected eps of the shape \(10, 4\), found \(10, 2\)"),
        (lambda z: z[:5], "found"),
        (lambda z: None, "NoneType"),
        (lambda z: "eps", "str"),
        (lambda z: z + 1j, "complex128"),
        (lambda z: z.astype(object), "found"),
        (lambda z: [[1, 2], [3]], "found"),
    ],
)
def test_wrong_answers_are_named(ring, answer, says):
    with pytest.raises(psld.ArgumentError, match=says) as caught:
        psld.sample(ring.recipe, lambda z, t: answer(z), 2, n=10, nfe=4)
    assert str(caught.value).startswith("score: ")
    assert psld.sample(ring.recipe, ring.source, 2, n=3, nfe=3).shape == (3, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named(ring, value):
    def score(z, t):
        eps = np.zeros_like(z)
        eps[3, 1] = value
        return eps

    with pytest.raises(psld.NotFinite, match="state 3 is not finite at t = 1"):
        psld.sample(ring.recipe, score, 2, n=10, nfe=4)


def test_answers_may_be_of_other_types(ring):
    expected = psld.sample(ring.recipe, lambda z, t: np.zeros_like(z), 2, n=5, nfe=4)
    for answer in (
        lambda z: np.zeros(z.shape, np.float32),
        lambda z: np.zeros(z.shape, int),
        lambda z: np.zeros(z.shape).tolist(),
        lambda z: np.zeros(z.shape[::-1]).T,
    ):
        assert np.array_equal(psld.sample(ring.recipe, lambda z, t: answer(z), 2, n=5, nfe=4), expected)


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(sampler="emm"), "emm"),
        (dict(nfe=0), "nfe"),
        (dict(nfe=2.5), "whole"),
        (dict(eta=2), "eta"),
        (dict(sampler="em", eta=1), "eta"),
        (dict(sampler="ode", nfe=5), "give tol"),
        (dict(sampler="em", tol=1e-3), "tol"),
        (dict(sampler="em", quality="best"), "quality"),
        (dict(quality="good"), "good"),
        (dict(eps=0.1, end_sigma=1), "eps"),
        (dict(n=0), "n"),
        (dict(seed=-1), "seed"),
        (dict(grid="1,0.5,0.7"), "grid"),
        (dict(n=True), "n"),
        (dict(predicts="noise"), "predicts"),
        (dict(cfg=2.0), "labels"),
        (dict(labels=[5], classes=3), "label"),
    ],
)
def test_wrong_options_are_named(ring, options, says):
    with pytest.raises(psld.ArgumentError, match=says):
        psld.sample(ring.recipe, lambda z, t: np.zeros_like(z), 2, **{"n": 4, **options})


def test_unknown_keywords_and_scores_are_refused(ring):
    with pytest.raises(TypeError, match="did you mean 'sampler'"):
        psld.sample(ring.recipe, ring.source, 2, smapler="em")
    with pytest.raises(psld.ArgumentError, match="expected a function"):
        psld.sample(ring.recipe, 3, 2)
    with pytest.raises(psld.ArgumentError, match="shape"):
        psld.sample(ring.recipe, ring.source, (2, 0))
    with pytest.raises(psld.ArgumentError, match="shape"):
        psld.sample(ring.recipe, ring.source, 3)


# ---- Progress, Ctrl-C, threads, leaks ------------------------------------------------------------------------------


def test_progress_is_told_and_may_cancel(ring):
    seen = []
    psld.sample(ring.recipe, ring.source, 2, n=10, nfe=6, progress=lambda done, total: seen.append((done, total)))
    assert seen[0][0] == 0 and seen[-1][0] == seen[-1][1] and seen == sorted(seen)
    with pytest.raises(psld.Cancelled):
        psld.sample(ring.recipe, ring.source, 2, n=10, nfe=6, progress=lambda done, total: done > 0)
    with pytest.raises(Surprise):

        def fail(done, total):
            raise Surprise

        psld.sample(ring.recipe, ring.source, 2, n=10, nfe=6, progress=fail)
    psld.sample(ring.recipe, ring.source, 2, n=10, nfe=6, progress=True)


@pytest.mark.parametrize("how", ["native", "callback"])
@pytest.mark.parametrize("sampler", ["em", "ode"])
def test_an_interrupt_ends_it_within_a_step(ring, how, sampler):
    """The signal comes while the library computes; the handler must raise out of psld.sample, and only there."""
    before, steps, sent = signal.getsignal(signal.SIGINT), [], []

    def interrupt(done, total):
        steps.append(done)
        if done > 0 and not sent:
            sent.append(len(steps))
            os.kill(os.getpid(), signal.SIGINT)  # noted here, raised in the next callback at the latest

    source = ring.source
    options = dict(tol=1e-9) if sampler == "ode" else dict(nfe=5000)
    with pytest.raises(KeyboardInterrupt):
        psld.sample(
            ring.recipe,
            source if how == "native" else lambda z, t: source(z, t),
            2,
            n=2000,
            sampler=sampler,
            progress=interrupt,
            **options,
        )
    assert sent and len(steps) - sent[0] <= 1
    assert signal.getsignal(signal.SIGINT) is before
    assert psld.sample(ring.recipe, source, 2, n=3, nfe=3).shape == (3, 2)


def test_an_interrupt_from_outside_ends_a_long_call(ring):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        psld.sample(ring.recipe, ring.source, 2, n=100000, sampler="em", nfe=900000)
    timer.join()


def test_handlers_of_other_signals_raise_too(ring):
    def handler(number, frame):
        raise Surprise("alarm")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Surprise, match="alarm"):
            psld.sample(ring.recipe, lambda z, t: ring.source(z, t), 2, n=1000, sampler="em", nfe=900000)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_interrupt_inside_the_score_is_raised_there(ring):
    where = []

    def score(z, t):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
        where.append("after")
        return np.zeros_like(z)

    with pytest.raises(KeyboardInterrupt):
        psld.sample(ring.recipe, score, 2, n=10, nfe=5)
    assert not where


def test_threads_sample_at_once(ring):
    two, found = psld.Mixture([[0.0, 0.0]], 0.3).source("vp"), {}

    def work(name, recipe, source):
        found[name] = [psld.sample(recipe, lambda z, t: source(z, t), 2, n=200, nfe=20, seed=s) for s in range(5)]

    alone = {}
    for results in (alone, found):
        found = results
        jobs = [
            threading.Thread(target=work, args=job)
            for job in (("ring", ring.recipe, ring.source), ("two", two.recipe, two))
        ]
        for job in jobs:
            job.start()
            if results is alone:
                job.join()
        for job in jobs:
            job.join()
    for name in ("ring", "two"):
        assert all(np.array_equal(a, b) for a, b in zip(alone[name], found[name]))


LEAK = """
import resource, sys
import numpy, psld
model = psld.Model(sys.argv[1])
source, recipe = model.source, model.recipe
def call(i):
    psld.sample(recipe, lambda z, t: source(z, t), 2, n=4, nfe=3, seed=i)
    model.sample(4, nfe=3, seed=i)
    try:
        psld.sample(recipe, lambda z, t: None, 2, n=4, nfe=3)
    except psld.ArgumentError:
        pass
def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
for i in range(1000):
    call(i)
before = memory()
for i in range(10000):
    call(i)
print(memory() - before)
"""


def test_ten_thousand_calls_leak_nothing():
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc to read the memory of a process from")
    out = subprocess.run([sys.executable, "-c", LEAK, RING], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert int(out) < 2**20  # a hundred bytes a call would be a megabyte


def test_a_child_of_fork_may_sample(ring):
    expected = psld.sample(ring.recipe, ring.source, 2, n=100, nfe=5)
    child = os.fork()
    if child == 0:
        same = np.array_equal(psld.sample(ring.recipe, ring.source, 2, n=100, nfe=5), expected)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
