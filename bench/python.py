#!/usr/bin/env python3
"""Cost of the Python package beside the library alone, in interleaved turns.

It needs the package, and NumPy with one thread (OPENBLAS_NUM_THREADS=1), whose threads would else spin beside the
library's. PSLD names the program and PSLD_TURNS the number of turns.

Of each pair it prints the medians of processor time, which is that of all threads, and their ratio; the same of the time
on the clock, which says something on a quiet machine alone; and the ratio of the first side with itself, as a measure
of the noise.

glibc gives the end of its heap back to the system when enough of it is free, which depends on everything that was
allocated before. Then NumPy's temporary arrays are new pages in every call, and a function of 10,000 points takes 30 %
longer. So the heap is kept on both sides, unless PSLD_HEAP=default.
"""

import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TURNS = int(os.environ.get("PSLD_TURNS", 7))


def keep_heap():
    trim_threshold, mmap_threshold = -1, -3  # of malloc.h
    for what in (trim_threshold, mmap_threshold):
        ctypes.CDLL(None).mallopt(what, 1 << 28)


def compare(name, first, second, turns=TURNS):
    """`first` and `second` return seconds of processors and on the clock."""
    spent = ([], [])
    for turn in range(2 * turns):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            spent[side].append((first, second)[side]())
    print(name)
    for kind, what in enumerate(("processor", "clock")):
        times = [[pair[kind] for pair in side] for side in spent]
        alone, other = map(statistics.median, times)
        itself = statistics.median(times[0][::2]) / statistics.median(times[0][1::2])
        print(
            f"    {what:10s} {alone:8.4f} s {other:8.4f} s   ratio {other / alone:.3f}   (first with itself {itself:.3f})",
            flush=True,
        )


def measured(function):
    """Seconds of processors, of all threads, and on the clock, of a call."""
    before = time.process_time(), time.perf_counter()
    function()
    return time.process_time() - before[0], time.perf_counter() - before[1]


def command(*words):
    """The same of the program."""
    words = [os.environ.get("PSLD", os.path.join(ROOT, "build", "psld")), *words]

    def run():
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - began

    return run


def digits():
    path = os.path.join(ROOT, "models", "digits.safetensors")

    def sample():
        psld.Model(path).sample(64, nfe=10)

    compare(
        "64 digits, 10 evaluations: command, Python",
        command("sample", path, "-n", "64", "--nfe", "10", "-o", os.path.join(tempfile.gettempdir(), "psld-bench.npy")),
        lambda: measured(sample),
    )


def callback():
    """A mixture in the plane as anybody would write it, 10,000 points: the function alone, and as a score."""
    recipe = psld.Recipe("psld gamma=0.02")
    angle = np.arange(8) * np.pi / 4
    means = 1.2 * np.stack([np.cos(angle), np.sin(angle)], 1)
    tables = {}

    def score(z, t):
        if t[0] not in tables:
            kernel = recipe.kernel(t[0])
            mu = kernel.mean[:, 0]
            cov = kernel.cov + 0.12**2 * np.outer(mu, mu)
            precision = np.linalg.inv(cov)
            tables[t[0]] = mu, precision, (precision @ mu), mu @ precision @ mu
        mu, precision, gain, strength = tables[t[0]]
        y = z.reshape(len(z), 2, 2)
        pull = np.einsum("a,naj->nj", gain, y)
        logits = pull @ means.T - 0.5 * strength * (means**2).sum(1)
        weight = np.exp(logits - logits.max(1, keepdims=True))
        weight /= weight.sum(1, keepdims=True)
        centre = weight @ means
        return (np.einsum("ab,nbj->naj", -precision, y) + gain[:, None] * centre[:, None, :]).reshape(len(z), 4)

    for sampler, nfe in (("em", 60), ("sscs", 60), ("dpm", 60), ("ancestral", 60)):
        inputs = []
        psld.sample(
            recipe,
            lambda z, t: inputs.append((z.copy(), t)) or score(z, t),
            2,
            n=10000,
            sampler=sampler,
            nfe=nfe,
            predicts="score",
        )

        def alone():
            for z, t in inputs:
                score(z, t)

        def within():
            psld.sample(recipe, score, 2, n=10000, sampler=sampler, nfe=nfe, predicts="score")

        compare(f"score of 10,000 points, {sampler}: alone, sampled", lambda: measured(alone), lambda: measured(within))


def start():
    """Importing NumPy, and psld with it; and from there to pixels."""

    def script(code):
        begin = "import time; t = time.process_time(), time.perf_counter()\n"
        end = "\nprint(time.process_time() - t[0], time.perf_counter() - t[1])"

        def run():
            words = [sys.executable, "-c", begin + code + end]
            out = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
            return tuple(map(float, out.split()))

        return run

    compare("import of numpy; of numpy and psld", script("import numpy"), script("import numpy, psld"))
    pixels = "import psld; psld.show(psld.Model('digits').sample(16)).png"
    compare("import of numpy; import of psld to pixels of 16 digits", script("import numpy"), script(pixels))


import psld  # noqa: E402  (numpy first: its import is no cost of ours)

if os.environ.get("PSLD_HEAP") != "default":
    keep_heap()
for name in sys.argv[1:] or ("start", "callback", "digits"):
    {"start": start, "callback": callback, "digits": digits}[name]()
