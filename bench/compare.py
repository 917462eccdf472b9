"""Our network beside PyTorch (eager) and ONNX Runtime: the same weights, the same machine, the same run.

    python3 compare.py [CONFIG] [-o FOLDER] [--threads N] [--rounds N] [--repetitions N] [--only forward|train] ...

tools/bench-compare makes the environment that this needs and runs it. Contenders take turns, A B C A B C ..., so
that what else happens on the machine hits all alike; a turn is the best of a few repetitions after a warm-up. Ratios
are medians over rounds of the ratio within a round. Each contender is a process of its own, whose peak resident size is
what the kernel accounts (getrusage). This process itself stays small: a child starts with the peak of its parent.
"""

import argparse
import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TOLERANCE = 5e-5
NAMES = {"psld": "psld", "torch": "PyTorch", "onnx": "ONNX Runtime"}
RATIOS = ("median", "best")
BUSY = "threads wait for each other differently in each contender, so even the ratios may lean to one side."
COLUMNS = ("", "contender", "s an image, median", "best", "GFLOP/s", "peak MB", "of which libraries",
           "its time / psld's, median", "best")
NOTE = "Times on a shared machine move; only ratios within one run mean anything."


# ---- Contenders: in the parent ------------------------------------------------------------------------------------


def finish(process):
    """Waits for a child; its exit code and peak resident bytes."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


class Psld:
    """One process a turn: it opens the model, plans, warms up and measures."""

    def __init__(self, options, weights, case, batch):
        self.command = [options.psld, "bench", "net", weights, "-b", str(batch), "--json"]
        self.command += ["--threads", str(options.threads), "--repetitions", str(options.repetitions)]
        self.command += ["--train"] if case == "train" else []
        self.command += ["--reference"] if options.reference else []
        self.peak, self.flops = 0, None

    def turn(self):
        process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        answer = process.stdout.read()
        code, peak = finish(process)
        if code != 0:
            raise RuntimeError("failed: " + " ".join(self.command))
        answer = json.loads(answer)
        self.peak = max(self.peak, peak)
        self.flops = answer["gflops"] * answer["seconds_per_image"] * 1e9
        return answer["seconds_per_image"]

    def close(self):
        return self.peak


class Worker:
    """A Python process that stays: it loads the network at the start and measures when told to."""

    def __init__(self, options, kind, *words):
        self.repetitions = options.repetitions
        threads = str(options.threads)
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker", kind, threads, *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=options.log, text=True, env=environment)
        self.imported = self.ask(None)

    def ask(self, question):
        """A line to the worker, and the line of JSON that it answers; the first comes unasked, when it is ready."""
        if question is not None:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            code, _ = finish(self.process)
            raise RuntimeError(f"{self.process.args[3]} failed (exit code {code}); compare.log says why")
        return json.loads(answer)

    def turn(self):
        return self.ask(self.repetitions)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        return finish(self.process)[1]


def ask_once(options, kind, *words):
    worker = Worker(options, kind, *words)
    answer = worker.ask(0)
    worker.close()
    return answer


# ---- Workers: each in its own process -----------------------------------------------------------------------------


def set_threads(threads):
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)


def made_up(batch, channels, size):
    """The states and times that `psld bench net` uses."""
    import torch

    z = torch.sin(torch.arange(batch * channels * size * size, dtype=torch.float64)).float()
    return z.reshape(batch, channels, size, size), torch.full((batch,), 0.5)


def open_network(config, weights):
    import torch_network

    network, channels = torch_network.load(config, weights)
    return network, channels, torch_network.read_config(config)["image_size"]


def best_of(repetitions, run):
    best = float("inf")
    for _ in range(repetitions):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best


def torch_forward(threads, config, weights, batch):
    import torch

    set_threads(threads)
    network, channels, size = open_network(config, weights)
    z, t = made_up(int(batch), channels, size)

    @torch.inference_mode()
    def run():
        network(z, t)

    run()
    return lambda repetitions: best_of(repetitions, run) / int(batch)


def torch_train(threads, config, weights, batch):
    """Forward, backward, clipping, Adam, EMA. The states do not change: drawing them costs nothing beside the rest."""
    import copy

    import torch

    set_threads(threads)
    network, channels, size = open_network(config, weights)
    ema = copy.deepcopy(network)
    network.train()
    parameters, averages = list(network.parameters()), list(ema.parameters())
    adam = torch.optim.Adam(parameters, lr=2e-4, fused=True)
    z, t = made_up(int(batch), channels, size)
    with torch.no_grad():
        target = torch.randn_like(ema(z, t))

    def run():
        adam.zero_grad(set_to_none=True)
        loss = (network(z, t) - target).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1e-4)

    run()
    return lambda repetitions: best_of(repetitions, run) / int(batch)


def onnx_session(threads, path):
    import onnxruntime

    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads = threads, 1
    how.log_severity_level = 3
    return onnxruntime.InferenceSession(path, how, providers=["CPUExecutionProvider"])


def onnx_forward(threads, path, batch):
    import numpy

    session = onnx_session(threads, path)
    shape = session.get_inputs()[0].shape
    z = numpy.sin(numpy.arange(numpy.prod(shape))).astype(numpy.float32).reshape(shape)
    feed = {"z": z, "t": numpy.full(int(batch), 0.5, numpy.float32)}
    session.run(None, feed)
    return lambda repetitions: best_of(repetitions, lambda: session.run(None, feed)) / int(batch)


def onnx_export(threads, config, weights, folder, *batches):
    import torch

    set_threads(threads)
    network, channels, size = open_network(config, weights)
    for batch in batches:
        path = os.path.join(folder, f"batch{batch}.onnx")
        torch.onnx.export(network, made_up(int(batch), channels, size), path, input_names=["z", "t"],
                          output_names=["eps"], dynamo=True, verbose=False)
    return lambda _: True


def agreement(threads, psld, config, weights, onnx):
    """The largest difference from PyTorch's output, relative to its largest value, of `psld score` and ONNX Runtime."""
    import numpy
    import torch

    set_threads(threads)
    network, channels, size = open_network(config, weights)
    z, t = made_up(1, channels, size)
    with torch.inference_mode():
        eps = network(z, t).numpy()

    def error(found):
        return float(numpy.abs(found - eps).max() / numpy.abs(eps).max())

    def answer(_):
        with tempfile.TemporaryDirectory() as folder:
            path = {name: os.path.join(folder, name + ".npy") for name in ("z", "t", "eps")}
            numpy.save(path["z"], z.numpy())
            numpy.save(path["t"], t.numpy())
            subprocess.run([psld, "score", weights, "--z", path["z"], "--t", path["t"], "-o", path["eps"],
                            "--threads", str(threads)], check=True, stdout=sys.stderr)
            errors = {"psld": error(numpy.load(path["eps"]))}
        if onnx:
            errors["onnx"] = error(onnx_session(threads, onnx).run(None, {"z": z.numpy(), "t": t.numpy()})[0])
        return errors

    return answer


def limits(threads):
    """What PyTorch reaches here in a large matrix product and in copying memory: the bounds of everything else."""
    import torch

    set_threads(threads)
    a, b = torch.rand(1536, 1536), torch.rand(1536, 1536)
    source, target = torch.rand(1 << 25), torch.rand(1 << 25)
    return lambda _: {
        "matrix_product_gflops": 2 * 1536**3 / best_of(20, lambda: torch.mm(a, b)) / 1e9,
        "copy_gbytes": 8 * source.numel() / best_of(20, lambda: target.copy_(source)) / 1e9,
        "torch": torch.__version__.split("+")[0],
    }


def torch_breakdown(threads, config, weights, batch):
    """Seconds per image of PyTorch's forward by kind of operation (its own profiler, self time)."""
    import torch

    set_threads(threads)
    network, channels, size = open_network(config, weights)
    z, t = made_up(int(batch), channels, size)

    def kind(event):
        name = event.key.removeprefix("aten::")
        if "convolution" in name:
            weight = event.input_shapes[1]
            return f"convolution {weight[2]}x{weight[3]}" if len(weight) == 4 else "convolution"
        for part, named in (("group_norm", "GroupNorm"), ("silu", "SiLU"), ("attention", "attention"), ("cat", "cat"),
                            ("addmm", "linear"), ("add", "add, scale"), ("mul", "add, scale"),
                            ("upsample", "resampling"), ("avg_pool", "resampling"), ("copy", "copies")):
            if part in name:
                return named
        return "other"

    @torch.inference_mode()
    def answer(_):
        network(z, t)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
            network(z, t)
        seconds = {}
        for event in profile.key_averages(group_by_input_shape=True):
            seconds[kind(event)] = seconds.get(kind(event), 0) + event.self_cpu_time_total * 1e-6 / int(batch)
        return dict(sorted(seconds.items(), key=lambda item: -item[1]))

    return answer


WORKERS = {"torch-forward": torch_forward, "torch-train": torch_train, "onnx-forward": onnx_forward,
           "onnx-export": onnx_export, "agreement": agreement, "limits": limits, "torch-breakdown": torch_breakdown}


def serve(kind, threads, *words):
    """Says what the libraries alone take, then answers, on a copy of stdout: what libraries print goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    importlib.import_module("onnxruntime" if kind == "onnx-forward" else "torch")
    imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answer = WORKERS[kind](int(threads), *words)
    print(json.dumps(imported), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


# ---- The measurement ----------------------------------------------------------------------------------------------


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


def make_contenders(options, work, case, batch):
    made = {}
    if case == "forward" or "--train" in options.psld_help:
        made["psld"] = Psld(options, work["weights"], case, batch)
    else:
        print("psld bench net has no --train yet: only the others' training step is measured")
    made["torch"] = Worker(options, "torch-" + case, options.config, work["weights"], batch)
    if case == "forward" and work["onnx"]:
        made["onnx"] = Worker(options, "onnx-forward", os.path.join(work["folder"], f"batch{batch}.onnx"), batch)
    return made


def measure(options, work, case, batch):
    contenders = make_contenders(options, work, case, batch)
    seconds = {name: [] for name in contenders}
    for number in range(options.rounds):
        for name, contender in contenders.items():
            time.sleep(0.2)  # until the threads of the one before have gone to sleep
            seconds[name].append(contender.turn())
        now = ", ".join(f"{NAMES[name]} {values[-1]:.4f}" for name, values in seconds.items())
        print(f"  {case} B={batch}, round {number + 1} of {options.rounds}: {now} s an image", file=sys.stderr)
    result = {"case": case, "batch": batch, "contenders": {}, "ratios": {}}
    for name, contender in contenders.items():
        peak = contender.close()
        result["contenders"][name] = {"seconds_per_image": seconds[name], "median": statistics.median(seconds[name]),
                                      "best": min(seconds[name]), "peak_bytes": peak,
                                      "library_bytes": getattr(contender, "imported", 0)}
    if "psld" in contenders:
        result["flops_per_image"] = contenders["psld"].flops
        others = {name: seconds[name] for name in contenders if name != "psld"}
        if len(others) > 1:
            others["fastest"] = [min(values) for values in zip(*others.values())]
        for name, values in others.items():
            result["ratios"][name] = {
                "median": statistics.median(a / b for a, b in zip(values, seconds["psld"])),
                "best": min(values) / min(seconds["psld"]),
            }
    return result


def prepare(options, folder):
    """Weights, the same for all; init_scale 0 would make most of the network vanish from the comparison."""
    weights = os.path.join(folder, "weights.safetensors")
    subprocess.run([options.psld, "convert", options.config, weights, "model.init_scale=1"], check=True,
                   stdout=subprocess.DEVNULL)
    work = {"folder": folder, "weights": weights, "onnx": not options.no_onnx}
    if work["onnx"]:
        print("exporting for ONNX Runtime ...", file=sys.stderr)
        try:
            ask_once(options, "onnx-export", options.config, weights, folder, *sorted({1, *options.batch}))
        except RuntimeError as error:
            print(f"without ONNX Runtime: {error}", file=sys.stderr)
            work["onnx"] = False
    return work


def compare(options, folder):
    work = prepare(options, folder)
    bounds = ask_once(options, "limits")
    torch_version = bounds.pop("torch")
    report = {
        "date": datetime.date.today().isoformat(),
        "config": os.path.splitext(os.path.basename(options.config))[0],
        "machine": {"processor": processor(), "cores": os.cpu_count(), "load_before": options.load, **bounds},
        "threads": options.threads,
        "rounds": options.rounds,
        "repetitions": options.repetitions,
        "backend": backend(options, work["weights"]),
        "versions": {"torch": torch_version},
    }
    if work["onnx"]:
        report["versions"]["onnx"] = importlib.metadata.version("onnxruntime")
    first = os.path.join(folder, "batch1.onnx") if work["onnx"] else ""
    report["error"] = ask_once(options, "agreement", options.psld, options.config, work["weights"], first)
    if not max(report["error"].values()) <= TOLERANCE:
        raise RuntimeError(f"results differ by {report['error']} of the largest value; allowed are {TOLERANCE}")
    cases = [("forward", batch) for batch in options.batch] + [("train", max(options.batch))]
    report["cases"] = [measure(options, work, *case) for case in cases if options.only in (None, case[0])]
    if options.breakdown:
        report["torch_breakdown"] = ask_once(options, "torch-breakdown", options.config, work["weights"],
                                             max(options.batch))
    report["machine"]["load_after"] = os.getloadavg()[0]
    return report


# ---- What is printed and written ----------------------------------------------------------------------------------


def heading(report, name):
    version = f"({report['backend']})" if name == "psld" else report["versions"].get(name)
    return f"{NAMES[name]} {version}" if version else NAMES[name]


def table(report):
    """Lines of Markdown."""
    machine = report["machine"]
    yield f"{report['config']}, {report['date']}, {machine['processor']}, {machine['cores']} cores, " \
          f"{report['threads']} threads, load {machine['load_before']:.1f} before and {machine['load_after']:.1f} after"
    yield f"PyTorch's matrix product {machine['matrix_product_gflops']:.0f} GFLOP/s, copying " \
          f"{machine['copy_gbytes']:.1f} GB/s; {report['rounds']} rounds, best of {report['repetitions']} in each"
    errors = ", ".join(f"{NAMES[name]} {error:.1e}" for name, error in report["error"].items())
    yield f"difference from PyTorch's output, of the largest value: {errors}"
    yield NOTE
    if machine["load_before"] > 0.5:
        yield f"OTHERS WERE AT WORK (load {machine['load_before']:.1f} at the start): {BUSY}"
    yield ""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---" * len(COLUMNS) + "|"
    for case in report["cases"]:
        for name, found in case["contenders"].items():
            ratio = case["ratios"].get(name)
            flops = case.get("flops_per_image")  # as psld counts them: convolutions as if done directly
            cells = [f"{case['case']} B={case['batch']}", heading(report, name), f"{found['median']:.4f}",
                     f"{found['best']:.4f}", f"{flops / found['best'] / 1e9:.1f}" if flops else "",
                     f"{found['peak_bytes'] / 1e6:.0f}",
                     f"{found['library_bytes'] / 1e6:.0f}" if found["library_bytes"] else "",
                     *(f"{ratio[key]:.2f}" if ratio else "" for key in RATIOS)]
            yield "| " + " | ".join(cells) + " |"
    if "torch_breakdown" in report:
        total = sum(report["torch_breakdown"].values())
        yield ""
        yield "PyTorch's forward by operation: " + ", ".join(
            f"{kind} {seconds / total:.0%}" for kind, seconds in report["torch_breakdown"].items()
            if seconds / total >= 0.005)


def chart(report):
    """Bars of the best times, as SVG."""
    colours = {"psld": "#1b6ca8", "torch": "#d9822b", "onnx": "#7a7a7a"}
    left, right, bar, gap, y = 110, 330, 20, 16, 66
    parts = []
    for case in report["cases"]:
        longest = max(found["best"] for found in case["contenders"].values())
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{case["case"]} B={case["batch"]}</text>')
        for name, found in case["contenders"].items():
            width = right * found["best"] / longest
            ratio = case["ratios"].get(name)
            label = f'{heading(report, name)}: {found["best"]:.4f} s' + (f', {ratio["best"]:.2f}x' if ratio else "")
            parts.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{bar - 3}" fill="{colours[name]}"/>')
            parts.append(f'<text x="{left + width + 6:.1f}" y="{y + 13}">{label}</text>')
            y += bar
        y += gap
    title = f"{report['config']}: seconds per image, best of a run ({report['threads']} threads, {report['date']})"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{y}" viewBox="0 0 720 {y}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="720" height="{y}" fill="white"/>',
        f'<text x="20" y="26" font-size="15">{title}</text>',
        f'<text x="20" y="46" fill="#666">Shorter is better; each group has its own scale; only ratios '
        'within one run mean anything.</text>',
        *parts, "</svg>", ""])


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", nargs="?", default=os.path.join(ROOT, "configs", "cifar10-psld-39m.yaml"))
    parser.add_argument("-o", "--out", default=os.path.join(ROOT, "build", "bench-compare"), metavar="FOLDER",
                        help="where compare.json, compare.md and compare.svg go (default build/bench-compare)")
    parser.add_argument("--psld", default=os.path.join(ROOT, "build", "psld"), help="the program (default build/psld)")
    parser.add_argument("--threads", type=int, default=2, help="for every contender (default 2)")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8], help="sizes of a batch (default 1 8)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender (default 5)")
    parser.add_argument("--repetitions", type=int, default=3, help="a turn is the best of N (default 3)")
    parser.add_argument("--only", choices=("forward", "train"), help="only these cases")
    parser.add_argument("--reference", action="store_true", help="measure psld's reference kernels")
    parser.add_argument("--no-onnx", action="store_true", help="leave ONNX Runtime out")
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
    options.psld_help = subprocess.run([options.psld, "bench", "--help"], capture_output=True, text=True).stdout
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
    text = "\n".join(table(report)) + "\n"
    print(text, end="")
    write(options.out, "compare.md", text)
    write(options.out, "compare.json", json.dumps(report, indent=2) + "\n")
    write(options.out, "compare.svg", chart(report))
    print(f"\nwritten: {os.path.relpath(options.out)}/compare.md, .json and .svg")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(*sys.argv[2:])
    else:
        main()
