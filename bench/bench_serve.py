#!/usr/bin/env python3
"""Load on psld serve: recipe analysis at a rate, event streams beside sampling, memory and descriptors.

    bench/bench_serve.py build/psld [load|streams|leaks|start]

Prints what docs/measurements/serve.md has. Needs nothing but Python."""
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse


class Server:
    def __init__(self, psld):
        self.folder = tempfile.TemporaryDirectory()
        began = time.monotonic()
        self.process = subprocess.Popen([psld, "serve", self.folder.name, "--port", "0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        url = urllib.parse.urlparse(self.process.stdout.readline())
        self.port, self.token = url.port, urllib.parse.parse_qs(url.query)["token"][0]
        self.ask("GET", "/")
        self.started = time.monotonic() - began

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def send(self, connection, method, path, body=None):
        headers = {"Authorization": "Bearer " + self.token}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def ask(self, method, path, body=None):
        connection = self.connect()
        try:
            return self.send(connection, method, path, body)
        finally:
            connection.close()

    def resources(self):
        """Resident memory in kB, and open descriptors."""
        with open(f"/proc/{self.process.pid}/status") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return memory, len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def seconds(self):
        """Of processors, so far."""
        with open(f"/proc/{self.process.pid}/stat") as status:
            fields = status.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def load(psld, rate=200, seconds=20, clients=8):
    """Requests at fixed moments, whatever the answers take: a late answer delays none of the others."""
    for name, body in [("analysis", {}), ("with 128 points of curves", {"curves": 128}),
                       ("with curves and 2 paths", {"curves": 128, "paths": 2})]:
        server, times, failed = Server(psld), [], []
        begin = time.monotonic() + 0.5

        def client(number):
            connection = server.connect()
            for i in range(number, rate * seconds, clients):
                due = begin + i / rate
                time.sleep(max(0, due - time.monotonic()))
                recipe = {"preset": "psld", "gamma": 0.001 * (1 + i % 900)}
                status, _ = server.send(connection, "POST", "/api/recipe", {"recipe": recipe, **body})
                times.append(time.monotonic() - due)
                if status != 200:
                    failed.append(status)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        took = time.monotonic() - begin
        print(f"{name}: {len(times)} requests in {took:.1f} s ({len(times) / took:.0f}/s), {len(failed)} failed: "
              f"median {1e3 * statistics.median(times):.1f} ms, 99th percentile {1e3 * quantile(times, 0.99):.1f} ms, "
              f"longest {1e3 * max(times):.1f} ms")
        server.close()


def draw(server, seed, n=64):
    status, body = server.ask("POST", "/api/jobs", {"kind": "draw", "model": "shipped:digits.safetensors", "n": n,
                                                    "seed": seed})
    assert status == 202, body
    return json.loads(body)["id"]


def wait(server, job):
    while True:
        about = json.loads(server.ask("GET", f"/api/jobs/{job}")[1])
        if about["state"] not in ("waiting", "running"):
            assert about["state"] == "done", about
            return about["seconds"]
        time.sleep(0.05)


def streams(psld, turns=9, count=50, n=64):
    """Turns without and with streams, one after the other: seconds that a job took, and seconds of processors that the
    server used for it, which do not depend on what else the machine does."""
    server, took, used = Server(psld), ([], []), ([], [])
    wait(server, draw(server, 0, n))
    for turn in range(2 * turns):
        watched = turn % 2
        before = server.seconds()
        job = draw(server, turn // 2, n)
        threads = [threading.Thread(target=server.ask, args=("GET", f"/api/jobs/{job}/events"))
                   for _ in range(count * watched)]
        [t.start() for t in threads]
        took[watched].append(wait(server, job))
        [t.join() for t in threads]
        used[watched].append(server.seconds() - before)
    for name, values in [("time", took), ("time of processors", used)]:
        alone, beside = map(statistics.median, values)
        spread = (quantile(values[0], 0.75) - quantile(values[0], 0.25)) / alone
        print(f"{n} digits, {turns} turns each, {name}: {alone:.3f} s without streams (quartiles {100 * spread:.1f} % "
              f"apart), {beside:.3f} s with {count}: {100 * (beside / alone - 1):+.1f} %")
    server.close()


def leaks(psld, requests=10000):
    server = Server(psld)
    paths = ["/", "/api/about", "/api/files", "/api/recipe?recipe=psld&curves=16&paths=1", "/api/jobs", "/nothing",
             "/api/model?path=shipped:digits.safetensors", "/api/runs", "/api/recipe?recipe=nothing"]

    def many(count):
        connection = server.connect()
        for i in range(count):
            if i % 50 == 0:
                connection.close()
            server.send(connection, "GET", paths[i % len(paths)])
        connection.close()
        time.sleep(0.5)
        return server.resources()

    many(1000)
    for _ in range(3):
        wait(server, draw(server, 1, 8))
    before = many(1000)
    after = many(requests)
    print(f"after 2000 requests and 3 jobs {before[0]} kB and {before[1]} descriptors, after {requests} more "
          f"{after[0]} kB and {after[1]}")
    server.close()


def start(psld, turns=11):
    times = []
    for _ in range(turns):
        server = Server(psld)
        times.append(server.started)
        server.close()
    print(f"from the start of the process to the page: median {statistics.median(times):.3f} s, longest {max(times):.3f} s")


if __name__ == "__main__":
    parts = {"load": load, "streams": streams, "leaks": leaks, "start": start}
    if len(sys.argv) < 2 or any(word not in parts for word in sys.argv[2:]):
        sys.exit(__doc__)
    for part in sys.argv[2:] or parts:
        parts[part](sys.argv[1])
