"""Our network beside PyTorch, ONNX Runtime and OpenVINO: the same weights, the same machine, the same run.

    python3 compare.py [CONFIG] [-o FOLDER] [--threads N] [--rounds N] [--repetitions N] [--only forward|train] ...

tools/bench-compare makes the environment that this needs and runs it. Contenders take turns, A B C A B C ..., so
that what else happens on the machine hits all alike; a turn is the best of a few repetitions after a warm-up. Ratios
are medians over rounds of the ratio within a round. Each contender is a process of its own, whose peak resident size is
what the kernel accounts (getrusage). This process itself stays small: a child starts with the peak of its parent.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from peers import PEERS, Worker, ask_once, finish, why_absent

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TOLERANCE = {"fp32": 5e-5, "bf16": 0.1}  # of the largest value; beyond it is another network
RATIOS = ("median", "best")
BUSY = "threads wait for each other differently in each contender, so even the ratios may lean to one side."
COLUMNS = ("", "contender", "s an image, median", "best", "GFLOP/s", "peak MB", "of which libraries",
           "its time / psld's, median", "best")
AGAINST = ("", "psld", "fastest fp32 peer", "its time / psld's, median", "best", "fastest peer of any precision",
           "its time / psld's, median", "best")
NOTE = "Times on a shared machine move; only ratios within one run mean anything."


# ---- Contenders -----------------------------------------------------------------------------------------------------


class Variant:
    """psld with an instruction set and a precision; None is its own choice."""

    def __init__(self, isa, precision):
        self.isa, self.precision = isa, precision
        self.key = "-".join(filter(None, ("psld", isa, None if precision == "fp32" else precision)))
        self.label = ", ".join(filter(None, (f"psld {isa}" if isa else "psld", None if precision == "fp32" else precision)))
        self.words = (["--isa", isa] if isa else []) + (["--precision", precision] if precision != "fp32" else [])

    def why_absent(self, help_text):
        missing = [word for word in self.words if word.startswith("--") and word not in help_text]
        return f"this psld has no {' and no '.join(missing)}" if missing else None


class Psld:
    """One process a turn: it opens the model, plans, warms up and measures."""

    imported = 0

    def __init__(self, options, variant, work, case, batch):
        self.command = [options.psld, "bench", "net", work["weights"], "-b", str(batch), "--json", *variant.words]
        self.command += ["--threads", str(options.threads), "--repetitions", str(options.repetitions)]
        self.command += ["--train"] if case == "train" else []
        self.command += ["--reference"] if options.reference else []
        self.log, self.peak, self.flops = options.log, 0, None

    def turn(self):
        process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        answer, errors = process.stdout.read(), process.stderr.read()
        code, peak = finish(process)
        self.log.write(errors)
        if code != 0:
            raise RuntimeError(errors.strip() or f"exit code {code}: " + " ".join(self.command))
        answer = json.loads(answer)
        self.peak = max(self.peak, peak)
        self.flops = answer["gflops"] * answer["seconds_per_image"] * 1e9
        return answer["seconds_per_image"]

    def close(self):
        return self.peak


class Other:
    def __init__(self, options, name, work, case, batch):
        self.worker = Worker(options.log, "measure", options.threads, name, case, json.dumps(work), batch)
        self.imported, self.repetitions = self.worker.imported, options.repetitions

    def turn(self):
        return self.worker.ask(self.repetitions)

    def close(self):
        return self.worker.close()


def skip(label, why):
    print(f"{label}: skipped, {why}", file=sys.stderr)


def choose_contenders(options):
    """The variants of psld and the names of the peers that can be measured here."""
    variants, peers = [], []
    for variant in (Variant(isa, precision) for isa in options.isa or [None] for precision in options.precision):
        why = variant.why_absent(options.psld_help)
        if why:
            skip(variant.label, why)
        else:
            variants.append(variant)
    for name, peer in PEERS.items():
        why = why_absent(name) or ("as --no-onnx says" if peer.module != "torch" and options.no_onnx else None)
        why = why or ("not among --peers" if options.peers and name not in options.peers else None)
        if name == "torch" and why:
            sys.exit(f"compare.py: {why}; everything is compared with PyTorch")
        if why:
            skip(peer.label, why)
        else:
            peers.append(name)
    if not variants:
        sys.exit("compare.py: no psld is left to measure")
    return variants, peers


# ---- Weights, and whether all compute the same ------------------------------------------------------------------------


def prepare(options, folder, peers):
    """Weights, the same for all; init_scale 0 would make most of the network vanish from the comparison."""
    work = {"folder": folder, "weights": os.path.join(folder, "weights.safetensors"), "config": options.config}
    subprocess.run([options.psld, "convert", options.config, work["weights"], "model.init_scale=1"], check=True,
                   stdout=subprocess.DEVNULL)
    ask_once(options.log, "export", options.threads, json.dumps(work))
    exports = [name for name in peers if PEERS[name].module != "torch"]
    if not exports:
        return work
    print("exporting the network as ONNX ...", file=sys.stderr)
    try:
        ask_once(options.log, "export", options.threads, json.dumps(work), *sorted({1, *options.batch}))
    except RuntimeError as error:
        for name in exports:
            skip(PEERS[name].label, f"the network cannot be exported: {error}")
            peers.remove(name)
    return work


def psld_output(options, variant, work, path):
    files = [word for name in "zt" for word in ("--" + name, os.path.join(work["folder"], name + ".npy"))]
    command = [options.psld, "score", work["weights"], *files, "-o", path, "--threads", str(options.threads)]
    command += ["--reference"] if options.reference else []
    done = subprocess.run([*command, *variant.words], stdout=options.log, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def read_npy(path):
    """float32 numbers of a .npy file, without importing numpy into this process."""
    import array

    with open(path, "rb") as file:
        data = file.read()
    start = 10 + int.from_bytes(data[8:10], "little")
    assert data[:8] == b"\x93NUMPY\x01\x00" and b"'<f4'" in data[:start], f"{path}: not float32"
    return array.array("f", data[start:])


def difference(found, expected):
    """The largest and the root mean square difference, of the largest and of the root mean square value."""
    off = [a - b for a, b in zip(found, expected)]
    return {"largest": max(map(abs, off)) / max(map(abs, expected)),
            "rms": (sum(x * x for x in off) / sum(x * x for x in expected)) ** 0.5}


def agreement(options, work, variants, peers):
    """Differences of all from PyTorch in fp32. Who cannot evaluate the network leaves; one who is wrong ends this."""
    errors, path = {}, os.path.join(work["folder"], "output.npy")
    ask_once(options.log, "output", options.threads, "torch", json.dumps(work), path)
    expected = read_npy(path)
    for entry in [*variants, *peers[1:]]:
        is_peer = isinstance(entry, str)
        name, label, precision = (entry, PEERS[entry].label, PEERS[entry].precision) if is_peer else \
            (entry.key, entry.label, entry.precision)
        try:
            if is_peer:
                ask_once(options.log, "output", options.threads, entry, json.dumps(work), path)
            else:
                psld_output(options, entry, work, path)
        except RuntimeError as error:
            if not is_peer and not entry.words:
                raise
            skip(label, error)
            (peers if is_peer else variants).remove(entry)
            continue
        errors[name] = difference(read_npy(path), expected)
        if not errors[name]["largest"] <= TOLERANCE[precision]:
            raise RuntimeError(f"{label}: its result differs by {errors[name]['largest']:.1e} of the largest value; "
                               f"allowed are {TOLERANCE[precision]}")
    return errors


# ---- The measurement --------------------------------------------------------------------------------------------------


def open_contenders(options, work, variants, peers, case, batch):
    made = {variant.key: Psld(options, variant, work, case, batch) for variant in variants}
    for name in peers:
        if case not in PEERS[name].cases:
            continue
        try:
            made[name] = Other(options, name, work, case, batch)
        except RuntimeError as error:
            skip(f"{case} B={batch}, {PEERS[name].label}", error)
    return made


def take_turns(options, contenders, labels, case, batch):
    """Seconds per image of each contender in each round. Who fails leaves."""
    seconds = {name: [] for name in contenders}
    for number in range(options.rounds):
        for name, contender in list(contenders.items()):
            time.sleep(0.2)  # until the threads of the one before have gone to sleep
            try:
                seconds[name].append(contender.turn())
            except RuntimeError as error:
                if name == "psld":
                    raise
                skip(f"{case} B={batch}, {labels[name]}", error)
                del contenders[name], seconds[name]
        now = ", ".join(f"{labels[name]} {values[-1]:.4f}" for name, values in seconds.items())
        print(f"  {case} B={batch}, round {number + 1} of {options.rounds}: {now} s an image", file=sys.stderr)
    return seconds


def ratio(peer, own):
    return {"median": statistics.median(a / b for a, b in zip(peer, own)), "best": min(peer) / min(own)}


def fastest(seconds, names):
    """Of these contenders: the name of the fastest by the median, and the least time of each round."""
    names = [name for name in names if name in seconds]
    if not names:
        return None, None
    best = min(names, key=lambda name: statistics.median(seconds[name]))
    return best, [min(times) for times in zip(*(seconds[name] for name in names))]


def compare_with_peers(seconds, variants):
    """Each variant of psld against the fastest peer in fp32, and of any precision, round by round."""
    against = {}
    for key in (variant.key for variant in variants if variant.key in seconds):
        against[key] = {}
        for kind, names in (("fp32", [name for name in PEERS if PEERS[name].precision == "fp32"]), ("any", [*PEERS])):
            name, times = fastest(seconds, names)
            if name:
                against[key][kind] = {"peer": name, **ratio(times, seconds[key])}
    return against


def measure(options, work, variants, peers, labels, case, batch):
    contenders = open_contenders(options, work, variants, peers, case, batch)
    seconds = take_turns(options, contenders, labels, case, batch)
    base = next((variant.key for variant in variants if variant.key in seconds), None)
    result = {"case": case, "batch": batch, "contenders": {}, "base": base}
    for name, contender in contenders.items():
        peak = contender.close()
        result["contenders"][name] = {"seconds_per_image": seconds[name], "median": statistics.median(seconds[name]),
                                      "best": min(seconds[name]), "peak_bytes": peak,
                                      "library_bytes": contender.imported}
    if base:
        result["flops_per_image"] = contenders[base].flops
        result["ratios"] = {name: ratio(values, seconds[base]) for name, values in seconds.items() if name != base}
        result["against"] = compare_with_peers(seconds, variants)
    return result


# ---- The report -------------------------------------------------------------------------------------------------------


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def backend(options, weights):
    """The first line of the plan names the kernels in use."""
    command = [options.psld, "bench", "net", weights, "--plan"] + (["--reference"] if options.reference else [])
    first = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(",")[0]
    return first.removeprefix("backend ") if first.startswith("backend ") else "unknown"


def make_labels(variants, peers, kernels):
    """How contenders are called in the report: with versions, and psld's own choice of kernels."""
    labels = {name: f"{PEERS[name].label} ({importlib.metadata.version(PEERS[name].module).split('+')[0].split('-')[0]})"
              for name in peers}
    return {**{variant.key: variant.label + ("" if variant.isa else f" ({kernels})") for variant in variants}, **labels}


def compare(options, folder):
    variants, peers = choose_contenders(options)
    work = prepare(options, folder, peers)
    errors = agreement(options, work, variants, peers)
    labels = make_labels(variants, peers, backend(options, work["weights"]))
    report = {
        "date": datetime.date.today().isoformat(),
        "config": os.path.splitext(os.path.basename(options.config))[0],
        "machine": {"processor": processor(), "cores": os.cpu_count(), "load_before": options.load,
                    **ask_once(options.log, "limits", options.threads)},
        "threads": options.threads,
        "rounds": options.rounds,
        "repetitions": options.repetitions,
        "labels": labels,
        "error": errors,
    }
    cases = [("forward", batch) for batch in options.batch] + [("train", max(options.batch))]
    report["cases"] = [measure(options, work, variants, peers, labels, *case)
                       for case in cases if options.only in (None, case[0])]
    if options.breakdown:
        report["torch_breakdown"] = ask_once(options.log, "breakdown", options.threads, json.dumps(work),
                                             max(options.batch))
    report["machine"]["load_after"] = os.getloadavg()[0]
    return report


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def two(ratio):
    return [f"{ratio[key]:.2f}" if ratio else "" for key in RATIOS]


def times_table(report):
    yield row(*COLUMNS)
    yield "|---" * len(COLUMNS) + "|"
    for case in report["cases"]:
        flops = case.get("flops_per_image")  # as psld counts them: convolutions as if done directly
        for name, found in case["contenders"].items():
            yield row(f"{case['case']} B={case['batch']}", report["labels"][name], f"{found['median']:.4f}",
                      f"{found['best']:.4f}", f"{flops / found['best'] / 1e9:.1f}" if flops else "",
                      f"{found['peak_bytes'] / 1e6:.0f}",
                      f"{found['library_bytes'] / 1e6:.0f}" if found["library_bytes"] else "",
                      *two(case.get("ratios", {}).get(name)))


def against_table(report):
    yield row(*AGAINST)
    yield "|---" * len(AGAINST) + "|"
    for case in report["cases"]:
        for key, kinds in case.get("against", {}).items():
            found = [kinds.get(kind) for kind in ("fp32", "any")]
            yield row(f"{case['case']} B={case['batch']}", report["labels"][key],
                      *(cell for one in found for cell in (report["labels"][one["peer"]] if one else "", *two(one))))


def summary(report):
    """Lines of Markdown."""
    machine, labels = report["machine"], report["labels"]
    yield f"{report['config']}, {report['date']}, {machine['processor']}, {machine['cores']} cores, " \
          f"{report['threads']} threads, load {machine['load_before']:.1f} before and {machine['load_after']:.1f} after"
    yield f"PyTorch's matrix product {machine['matrix_product_gflops']:.0f} GFLOP/s in fp32 and " \
          f"{machine['matrix_product_bf16_gflops']:.0f} in bf16, copying {machine['copy_gbytes']:.1f} GB/s; " \
          f"{report['rounds']} rounds, best of {report['repetitions']} in each"
    yield "difference from PyTorch's output in fp32, largest (of the largest value) and root mean square (relative): " + \
        ", ".join(f"{labels[name]} {error['largest']:.1e} and {error['rms']:.1e}"
                  for name, error in report["error"].items())
    yield NOTE
    if machine["load_before"] > 0.5:
        yield f"OTHERS WERE AT WORK (load {machine['load_before']:.1f} at the start): {BUSY}"
    yield ""
    yield from times_table(report)
    yield ""
    yield from against_table(report)
    if "torch_breakdown" in report:
        total = sum(report["torch_breakdown"].values())
        yield ""
        yield "PyTorch's forward by operation: " + ", ".join(
            f"{kind} {seconds / total:.0%}" for kind, seconds in report["torch_breakdown"].items()
            if seconds / total >= 0.005)


def colour(name):
    module = PEERS[name].module if name in PEERS else "psld"
    return {"psld": "#1b6ca8", "torch": "#d9822b", "onnxruntime": "#7a7a7a", "openvino": "#5a9367"}[module]


def chart(report):
    """Bars of the best times, as SVG."""
    left, right, bar, gap, y = 110, 330, 20, 16, 66
    parts = []
    for case in report["cases"]:
        longest = max(found["best"] for found in case["contenders"].values())
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{case["case"]} B={case["batch"]}</text>')
        for name, found in case["contenders"].items():
            width = right * found["best"] / longest
            times = case.get("ratios", {}).get(name)
            label = f'{report["labels"][name]}: {found["best"]:.4f} s' + (f', {times["best"]:.2f}x' if times else "")
            parts.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{bar - 3}" fill="{colour(name)}"/>')
            parts.append(f'<text x="{left + width + 6:.1f}" y="{y + 13}">{label}</text>')
            y += bar
        y += gap
    title = f"{report['config']}: seconds per image, best of a run ({report['threads']} threads, {report['date']})"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{y}" viewBox="0 0 860 {y}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="860" height="{y}" fill="white"/>',
        f'<text x="20" y="26" font-size="15">{title}</text>',
        f'<text x="20" y="46" fill="#666">Shorter is better; each group has its own scale; only ratios '
        'within one run mean anything.</text>',
        *parts, "</svg>", ""])


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


# ---- The command line -------------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", nargs="?", default=os.path.join(ROOT, "configs", "cifar10-psld-39m.yaml"))
    parser.add_argument("-o", "--out", default=os.path.join(ROOT, "build", "bench-compare"), metavar="FOLDER",
                        help="where compare.json, compare.md and compare.svg go (default build/bench-compare)")
    parser.add_argument("--psld", default=os.path.join(ROOT, "build", "psld"), help="the program (default build/psld)")
    parser.add_argument("--isa", nargs="+", metavar="NAME", help="instruction sets of psld (default: its own choice)")
    parser.add_argument("--precision", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"],
                        help="precisions of psld (default: both)")
    parser.add_argument("--peers", nargs="+", choices=[*PEERS], metavar="NAME",
                        help="torch and these only: " + ", ".join(name for name in PEERS if name != "torch"))
    parser.add_argument("--threads", type=int, default=2, help="for every contender (default 2)")
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 1],
                        help="sizes of a batch (default 8 1); training has the largest")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender (default 5)")
    parser.add_argument("--repetitions", type=int, default=3, help="a turn is the best of N (default 3)")
    parser.add_argument("--only", choices=("forward", "train"), help="only these cases")
    parser.add_argument("--reference", action="store_true", help="measure psld's reference kernels")
    parser.add_argument("--no-onnx", action="store_true", help="leave out ONNX Runtime and OpenVINO, which need the export")
    parser.add_argument("--breakdown", action="store_true", help="PyTorch's time by kind of operation, too")
    options = parser.parse_args()
    if not (options.psld and shutil.which(options.psld)):
        parser.error(f"{options.psld}: no such program; build it with make")
    if not os.path.isfile(options.config):
        parser.error(f"{options.config}: no such file")
    if min(options.threads, options.rounds, options.repetitions, *options.batch) < 1:
        parser.error("--threads, --rounds, --repetitions and --batch are at least 1")
    options.psld = os.path.abspath(shutil.which(options.psld))
    options.config = os.path.abspath(options.config)
    options.load = os.getloadavg()[0]
    options.peers = options.peers and ["torch", *options.peers]
    options.psld_help = subprocess.run([options.psld, "bench", "net", "--help"], capture_output=True, text=True).stdout
    return options


def main():
    options = parse()
    os.makedirs(options.out, exist_ok=True)
    log = open(os.path.join(options.out, "compare.log"), "w", encoding="utf-8")
    with log as options.log, tempfile.TemporaryDirectory() as folder:
        try:
            report = compare(options, folder)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            sys.exit(f"compare.py: {error}")
    text = "\n".join(summary(report)) + "\n"
    print(text, end="")
    write(options.out, "compare.md", text)
    write(options.out, "compare.json", json.dumps(report, indent=2) + "\n")
    write(options.out, "compare.svg", chart(report))
    print(f"\nwritten: {os.path.relpath(options.out)}/compare.md, .json and .svg")


if __name__ == "__main__":
    main()
