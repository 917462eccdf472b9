"""What bench/compare.py measures psld against: the peers, each in a process of its own.

    python3 peers.py JOB THREADS WORDS ...

A process opens what its job needs, writes a line with the resident bytes of the libraries alone, then answers each line
of JSON on its standard input by one on its standard output. What libraries print goes to stderr.
"""

import importlib
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import time
from typing import NamedTuple


class Peer(NamedTuple):
    label: str
    module: str  # the Python package
    precision: str
    cases: tuple
    channels_last: bool = False


BOTH = ("forward", "train")
PEERS = {
    "torch": Peer("PyTorch", "torch", "fp32", BOTH),
    "torch-last": Peer("PyTorch, channels last", "torch", "fp32", BOTH, True),
    "torch-bf16": Peer("PyTorch, bf16 autocast", "torch", "bf16", BOTH),
    "torch-bf16-last": Peer("PyTorch, bf16 autocast, channels last", "torch", "bf16", BOTH, True),
    "onnx": Peer("ONNX Runtime", "onnxruntime", "fp32", ("forward",)),
    "openvino": Peer("OpenVINO", "openvino", "fp32", ("forward",)),
    "openvino-bf16": Peer("OpenVINO, bf16", "openvino", "bf16", ("forward",)),
}


def why_absent(name):
    """Why a peer cannot be measured here, or None."""
    peer = PEERS[name]
    if importlib.util.find_spec(peer.module) is None:
        return f"the package {peer.module} is not installed"
    return None


# ---- Networks: each opens as a function of nothing that evaluates it once, on the same states and times --------------


def set_threads(threads):
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)


def made_up(batch, channels, size):
    """The states and times that `psld bench net` uses."""
    import torch

    z = torch.sin(torch.arange(batch * channels * size * size, dtype=torch.float64)).float()
    return z.reshape(batch, channels, size, size), torch.full((batch,), 0.5)


def open_network(work):
    import torch_network

    network, channels = torch_network.load(work["config"], work["weights"])
    return network, channels, torch_network.read_config(work["config"])["image_size"]


def prepare_torch(peer, work, batch):
    """The network and its input in the layout of the peer, and a context of its precision."""
    import torch

    network, channels, size = open_network(work)
    z, t = made_up(batch, channels, size)
    if peer.channels_last:
        network, z = network.to(memory_format=torch.channels_last), z.to(memory_format=torch.channels_last)
    return network, z, t, lambda: torch.autocast("cpu", torch.bfloat16, enabled=peer.precision == "bf16")


def torch_forward(peer, threads, work, batch):
    import torch

    network, z, t, precision = prepare_torch(peer, work, batch)

    @torch.inference_mode()
    def run():
        with precision():
            return network(z, t).float().numpy()

    return run


def torch_train(peer, threads, work, batch):
    """Forward, backward, clipping, Adam, EMA. The states do not change: drawing them costs nothing beside the rest."""
    import copy

    import torch

    network, z, t, precision = prepare_torch(peer, work, batch)
    ema = copy.deepcopy(network)
    network.train()
    parameters, averages = list(network.parameters()), list(ema.parameters())
    adam = torch.optim.Adam(parameters, lr=2e-4, fused=True)
    with torch.no_grad():
        target = torch.randn_like(ema(z, t))

    def run():
        adam.zero_grad(set_to_none=True)
        with precision():
            eps = network(z, t)
        loss = (eps.float() - target).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1e-4)

    return run


def exported(work, batch):
    return os.path.join(work["folder"], f"batch{batch}.onnx")


def numpy_input(shape):
    """The same states and times without PyTorch, whose libraries would count as the peer's memory."""
    import numpy

    z = numpy.sin(numpy.arange(numpy.prod(shape))).astype(numpy.float32).reshape(shape)
    return {"z": z, "t": numpy.full(shape[0], 0.5, numpy.float32)}


def onnx_forward(peer, threads, work, batch):
    import onnxruntime

    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads = threads, 1
    how.log_severity_level = 3
    session = onnxruntime.InferenceSession(exported(work, batch), how, providers=["CPUExecutionProvider"])
    feed = numpy_input(session.get_inputs()[0].shape)
    return lambda: session.run(None, feed)[0]


def openvino_forward(peer, threads, work, batch):
    import openvino

    core = openvino.Core()
    if peer.precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise SystemExit("this processor has no bf16")
    how = {"INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[peer.precision],
           "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    model = core.compile_model(core.read_model(exported(work, batch)), "CPU", how)
    request = model.create_infer_request()
    feed = numpy_input([*model.input("z").shape])

    def run():
        request.infer(feed)
        return request.get_output_tensor(0).data

    return run


OPEN = {("torch", "forward"): torch_forward, ("torch", "train"): torch_train,
        ("onnxruntime", "forward"): onnx_forward, ("openvino", "forward"): openvino_forward}


# ---- Jobs: given the number of threads and words, each returns a function from question to answer ---------------------


def best_of(repetitions, run):
    best = float("inf")
    for _ in range(repetitions):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best


def open_run(name, case, threads, work, batch):
    peer = PEERS[name]
    if peer.module == "torch":
        set_threads(threads)
    return OPEN[peer.module, case](peer, threads, work, batch)


def measure(threads, name, case, work, batch):
    """Seconds per image, the best of as many repetitions as the question says."""
    run = open_run(name, case, threads, json.loads(work), int(batch))
    run()
    return lambda repetitions: best_of(repetitions, run) / int(batch)


def output(threads, name, work, path):
    """Writes what a peer's network gives for one sample."""
    import numpy

    numpy.save(path, open_run(name, "forward", threads, json.loads(work), 1)())
    return lambda _: True


def export(threads, work, *batches):
    """Writes the input of one sample, and the network as ONNX for each size of a batch."""
    import numpy
    import torch

    set_threads(threads)
    work = json.loads(work)
    network, channels, size = open_network(work)
    for name, array in zip("zt", made_up(1, channels, size)):
        numpy.save(os.path.join(work["folder"], name + ".npy"), array.numpy())
    for batch in batches:
        torch.onnx.export(network, made_up(int(batch), channels, size), exported(work, batch), input_names=["z", "t"],
                          output_names=["eps"], dynamo=True, verbose=False)
    return lambda _: True


def limits(threads):
    """What PyTorch reaches here in a large matrix product and in copying memory: the bounds of everything else."""
    import torch

    set_threads(threads)
    a, b = torch.rand(1536, 1536), torch.rand(1536, 1536)
    a_bf16, b_bf16 = a.bfloat16(), b.bfloat16()
    source, target = torch.rand(1 << 25), torch.rand(1 << 25)
    return lambda _: {
        "matrix_product_gflops": 2 * 1536**3 / best_of(20, lambda: torch.mm(a, b)) / 1e9,
        "matrix_product_bf16_gflops": 2 * 1536**3 / best_of(20, lambda: torch.mm(a_bf16, b_bf16)) / 1e9,
        "copy_gbytes": 8 * source.numel() / best_of(20, lambda: target.copy_(source)) / 1e9,
    }


def breakdown(threads, work, batch):
    """Seconds per image of PyTorch's forward by kind of operation (its own profiler, self time)."""
    import torch

    set_threads(threads)
    network, channels, size = open_network(json.loads(work))
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


JOBS = {"measure": measure, "output": output, "export": export, "limits": limits, "breakdown": breakdown}


# ---- The process --------------------------------------------------------------------------------------------------


def finish(process):
    """Waits for a child; its exit code and peak resident bytes."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


class Worker:
    """A Python process that stays: it opens what its job needs at the start and answers when asked."""

    def __init__(self, log, job, threads, *words):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.log = log
        self.logged = log.tell()
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), job, str(threads), *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self.imported = self.read()

    def read(self):
        answer = self.process.stdout.readline()
        if not answer:
            code, _ = finish(self.process)
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}: {self.last_words()}"
            raise RuntimeError(f"{how} (compare.log may have more)")
        return json.loads(answer)

    def last_words(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            file.seek(self.logged)
            lines = file.read().split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "failed without a word")

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        """Ends it; its peak resident bytes."""
        self.process.stdin.close()
        self.process.stdout.read()
        return finish(self.process)[1]


def ask_once(log, job, threads, *words):
    worker = Worker(log, job, threads, *words)
    answer = worker.ask(0)
    worker.close()
    return answer


def serve(job, threads, *words):
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    importlib.import_module(PEERS[words[0]].module if job in ("measure", "output") else "torch")
    imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answer = JOBS[job](int(threads), *words)
    print(json.dumps(imported), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
