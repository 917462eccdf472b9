#!/usr/bin/env python3
"""labels.py PSLD [MODEL] [CONFIG]: what labels cost.

Sampling: a step with classifier-free guidance beside a plain one (batch 8, the same labels), and a plain one beside
itself, which is the noise of the machine. Training: a step with labels beside one without. Commands take turns; printed
are medians of the ratios within a turn, and their quartiles.
"""
import json
import statistics
import subprocess
import sys
import tempfile

TURNS = 7


def run(*arguments):
    return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def sample(psld, model, cfg, out):
    answer = run(psld, "sample", model, "--label", "all", "--cfg", cfg, "--weak", "none", "--sampler", "em", "--nfe", "60",
                 "--batch", "8", "-n", "8", "-o", out, "--json")
    return answer["seconds"]


def train(psld, config, classes):
    answer = run(psld, "bench", "net", config, "-b", "32", "--train", f"model.classes={classes}", "--json")
    return answer["seconds_per_image"]


def report(what, ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{what:45} {statistics.median(ratios):.3f}  ({low:.3f} to {high:.3f})", flush=True)


def main():
    psld = sys.argv[1]
    model = sys.argv[2] if len(sys.argv) > 2 else "models/digits.safetensors"
    config = sys.argv[3] if len(sys.argv) > 3 else "configs/digits.yaml"
    guided, plain, labelled, unlabelled = [], [], [], []
    folder = tempfile.TemporaryDirectory()
    out = folder.name + "/x.npy"
    for _ in range(TURNS):
        a, b, c = (sample(psld, model, cfg, out) for cfg in ("1", "2", "1"))
        guided.append(b / ((a + c) / 2))
        plain.append(c / a)
    report("a step with guidance, over a plain one", guided)
    report("a plain one over a plain one", plain)
    for _ in range(TURNS):
        a, b, c = train(psld, config, 0), train(psld, config, 10), train(psld, config, 0)
        labelled.append(b / ((a + c) / 2))
        unlabelled.append(c / a)
    report("a training step with labels, over one without", labelled)
    report("one without over one without", unlabelled)


if __name__ == "__main__":
    main()
