#!/usr/bin/env python3
"""The page of `psld serve` in a real browser: every view is used as a person would use it, and what it shows is compared
with what the program prints. Runs in an empty folder, with the program's path in PSLD. Skipped without Chromium."""

import base64
import json
import math
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import time

from browser import Browser, Failure, programs

PSLD = os.environ["PSLD"]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
DIGITS = str(SOURCE / "models" / "digits.safetensors")
FOLDER = pathlib.Path("folder")
NAMED_ROLES = {
    "button",
    "link",
    "slider",
    "spinbutton",
    "combobox",
    "checkbox",
    "textbox",
    "radio",
    "img",
    "image",
    "application",
    "progressbar",
}


def check(what):
    print("- " + what, flush=True)


def fail(text):
    print("FAILED: " + text, file=sys.stderr)
    sys.exit(1)


def expect(condition, text):
    if not condition:
        fail(text() if callable(text) else text)


def psld(*arguments):
    """What the program prints; it has to succeed."""
    done = subprocess.run([PSLD, *map(str, arguments)], capture_output=True, text=True)
    expect(done.returncode == 0, f"psld {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def read_npy(data):
    """Shape and bytes of the elements of a float32 array."""
    expect(data[:6] == b"\x93NUMPY" and b"'<f4'" in data[:128], "not a float32 .npy")
    length = struct.unpack("<H", data[8:10])[0]
    shape = tuple(int(n) for n in re.findall(r"\d+", re.search(rb"'shape': \(([^)]*)\)", data).group(1).decode()))
    return shape, data[10 + length :]


class Studio:
    """The server in a folder of its own, and a browser that has opened its page."""

    def __init__(self):
        self.server = subprocess.Popen(
            [PSLD, "serve", str(FOLDER), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.url = self.server.stdout.readline().strip()
        expect(re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\w+", self.url), f"the address is {self.url!r}")
        self.origin = self.url.split("/?")[0]

    def close(self):
        self.server.terminate()
        self.server.wait(timeout=30)
        self.server.stdout.close()

    def open(self, b, view="lab"):
        b.open("about:blank")
        b.log("browser"), b.log("performance")  # what the browser did before
        b.open(self.url)
        if view != "lab":
            self.view(b, view)

    def view(self, b, view):
        b.js("location.hash = arguments[0]", "#" + view)
        b.wait(
            "return document.querySelector('.tabs [aria-current]')?.hash === arguments[0] && document.querySelector('#view .split')",
            "#" + view,
        )

    def bytes(self, b, path):
        """What the page gets from the server at a path, with its cookie."""
        script = """const r = await fetch(arguments[0]), b = new Uint8Array(await r.arrayBuffer());
            if (!r.ok) return null;
            let s = ''; for (let i = 0; i < b.length; i += 8192) s += String.fromCharCode(...b.subarray(i, i + 8192)); return btoa(s)"""
        text = b.js("return (async () => {" + script.replace("arguments[0]", json.dumps(path)) + "})()")
        expect(text is not None, f"{path} is refused")
        return base64.b64decode(text)

    def quiet(self, b):
        """Nothing in the console, and no request to anywhere else."""
        lines = [line for line in b.log("browser") if line["level"] in ("SEVERE", "WARNING")]
        expect(not lines, lambda: "the console says: " + "\n".join(line["message"] for line in lines))
        asked = 0
        for line in b.log("performance"):
            message = json.loads(line["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"]
            expect(url.startswith((self.origin + "/", "data:", "blob:" + self.origin)), f"the page asked for {url}")
            asked += 1
        expect(asked > 3, "no requests were recorded")


# ---- Process lab ----


def reading(b, key, column=1):
    return b.js(
        "return document.querySelectorAll(`[data-row='${arguments[0]}'] td`)[arguments[1] - 1]?.dataset.value",
        key,
        column,
    )


def same_readings(b, recipe, column=1):
    """All numbers that are shown of a recipe against those of psld recipe --json."""
    said = json.loads(psld("recipe", *recipe, "--json", "--at", "0.1"))
    kernel = said["kernel"][0]
    wanted = {
        "sigma_max": said["sigma_max"],
        "distance": said["distance"],
        "sigma": kernel["sigma"],
        "distance_t": kernel["distance"],
    }
    for i in range(said["k"]):
        wanted[f"mean{i}"] = kernel["mean"][i][0]
        wanted[f"lambda{i}"] = kernel["lambda"][i]
        for j in range(i + 1):
            wanted[f"cov{i}{j}"] = kernel["cov"][i][j]
    b.wait(
        "return document.querySelectorAll(`[data-row='sigma_max'] td`)[arguments[1] - 1]?.dataset.value == arguments[0]",
        repr(said["sigma_max"]) if "e" not in repr(said["sigma_max"]) else str(said["sigma_max"]),
        column,
        what=f"the numbers of {recipe}",
    )
    for key, number in wanted.items():
        shown = reading(b, key, column)
        expect(
            shown is not None and float(shown) == number,
            f"{recipe}: {key} is shown as {shown}, the program says {number!r}",
        )
    expect(json.loads(reading(b, "eigenvalues", column)) == said["eigenvalues"], "other eigenvalues")
    expect(reading(b, "damping", column) == said["damping"], "another damping")


def lab(studio, b):
    check("process lab: a changed parameter shows the numbers of psld recipe")
    b.wait("return document.querySelector('.readings')", what="the readings")
    same_readings(b, ["psld"])
    b.type(".slider input[type=number]", "0.05")
    same_readings(b, ["psld", "gamma=0.05"])
    expect(
        float(
            b.js(
                "return document.querySelector('#view').dataset.took || document.querySelector('#view .split').dataset.took"
            )
        )
        > 0,
        "no time of the analysis",
    )

    check("process lab: a slider is moved by the keyboard, and the curves follow")
    before = b.js("return document.querySelector('.plots .curve').getAttribute('d')")
    b.js("document.querySelector('.slider input[type=range]').focus()")
    b.keys("right", "right", "right")
    gamma = b.js("return document.querySelector('.slider input[type=number]').value")
    expect(float(gamma) > 0.05, f"gamma is {gamma}")
    same_readings(b, ["psld", f"gamma={gamma}"])
    b.wait(
        "return document.querySelector('.plots .curve').getAttribute('d') !== arguments[0]", before, what="other curves"
    )

    check("process lab: a second recipe stands beside the first")
    b.click("[aria-label='Add a recipe to compare']")
    b.choose(".side select", "preset:told")
    same_readings(b, ["told"], 2)
    same_readings(b, ["psld", f"gamma={gamma}"], 1)

    check("process lab: matrices are edited, an invalid process is named with the condition that fails")
    b.click_text("button", "Matrices D and Q")
    b.wait("return document.querySelectorAll('.matrix input[type=number]').length === 18")
    b.type(".matrix .cell:first-child input[type=number]", "-0.25")
    text = b.wait("const v = document.querySelector('.verdict.bad'); return v && v.textContent", what="a refusal")
    FOLDER.joinpath("broken.yaml").write_text(
        "D: [[-0.25, 0, 0], [0, 0, 0], [0, 0, 2.598076211353316]]\nQ: [[0, -0.5, 0], [0.5, 0, -1.4142135623730951], [0, 1.4142135623730951, 0]]\n"
    )
    said = subprocess.run([PSLD, "recipe", str(FOLDER / "broken.yaml")], capture_output=True, text=True).stderr.strip()
    condition = re.sub(r"^psld: \S+?: ", "", said)
    expect(condition[:20] in text, f"the page says {text!r}, the program {said!r}")
    b.type(".matrix .cell:first-child input[type=number]", "0.25")
    b.wait("return !document.querySelector('.verdict.bad')", what="a valid process")

    check("process lab: the recipe is saved, and its file is the same process")
    b.click_text("button", "Save as YAML")
    b.type("dialog[open] input", "mine.yaml")
    b.click_text("dialog[open] button", "Save")
    b.wait("return !document.querySelector('dialog[open]')", what="the file to be saved")
    same_readings(b, [str(FOLDER / "mine.yaml")], 2)
    command = b.text(".stage > section:last-child code")
    expect(command.startswith("psld recipe"), f"the command line is {command!r}")

    check("process lab: points that are drawn diffuse to noise and back")
    b.click("[aria-label^='Remove recipe']")
    b.choose(".diffusion select", "own")
    b.drag(".pad canvas", (0.3, 0.3), (0.7, 0.3), (0.7, 0.7))
    expect(int(re.match(r"\d+", b.text(".pad .stack [role=status]")).group()) > 5, "no points were drawn")
    b.type(".diffusion .controls-row input", "20")
    b.js("document.querySelector('.diffusion').scrollIntoView()")
    shown = b.wait(
        "const d = document.querySelectorAll('.cloud-pair dd'); return d.length === 3 && d[2].textContent === '20' && [...d].map((e) => Number(e.dataset.value))",
        what="the animation",
    )
    expect(0 < shown[0] < 1 and 0 < shown[1] < 1, f"distance and floor are {shown}")
    picture = "return [...document.querySelectorAll('.cloud-pair canvas')].map((c) => c.toDataURL())"
    still = b.js(picture)
    b.js("const r = document.querySelector('.scrub input'); r.value = 1000; r.dispatchEvent(new Event('input'))")
    b.wait("return document.querySelector('.scrub output').textContent === 't = 1'")
    time.sleep(0.2)
    expect(all(x != y for x, y in zip(still, b.js(picture))), "the clouds do not move")
    b.click_text("button", "Play")
    b.wait("return document.querySelector('.scrub output').textContent !== 't = 1'", what="the animation to move")
    b.click_text("button", "Pause")
    studio.quiet(b)


# ---- Draw ----


def set_field(b, label, text):
    """Types into the field with this label."""
    b.js(
        "const f = [...document.querySelectorAll('label.field')].find((l) => l.offsetParent && l.firstChild.textContent === arguments[0]); f.control.id ||= 'f' + Math.random().toString(36).slice(2); window.fieldId = f.control.id",
        label,
    )
    b.type("#" + b.js("return window.fieldId"), text)


def draw(studio, b):
    check("draw: digits appear while they are computed, and have the bits of psld sample")
    studio.view(b, "draw")
    b.wait("return document.querySelector('form .small')?.textContent.includes('parameters')", what="the model")
    for label, text in (("Samples", "16"), ("Evaluations", "8"), ("Seed", "3")):
        set_field(b, label, text)
    b.js(
        "window.painted = 0; const draw = CanvasRenderingContext2D.prototype.drawImage; CanvasRenderingContext2D.prototype.drawImage = function (...a) { window.painted++; return draw.apply(this, a) }"
    )
    b.click_text("button", "Draw")
    b.wait("return document.querySelectorAll('.tile:not(:disabled)').length === 16", what="16 samples")
    expect(b.js("return window.painted") >= 16, "there were no previews")
    psld("sample", DIGITS, "-n", 16, "--nfe", 8, "--seed", 3, "-o", "same.npy")
    psld("sample", DIGITS, "-n", 16, "--nfe", 8, "--seed", 3, "-o", "same.png")
    links = b.js("return [...document.querySelectorAll('header a[download]')].map((a) => a.getAttribute('href'))")
    npy = next(link for link in links if ".npy" in link)
    expect(
        read_npy(studio.bytes(b, npy)) == read_npy(pathlib.Path("same.npy").read_bytes()), "other bits than psld sample"
    )
    expect(
        studio.bytes(b, next(link for link in links if ".png" in link)) == pathlib.Path("same.png").read_bytes(),
        "another PNG than that of psld sample",
    )

    check("draw: each tile shows its sample, pixel by pixel")
    shape, data = read_npy(pathlib.Path("same.npy").read_bytes())
    numbers = struct.unpack(f"<{math.prod(shape)}f", data)
    for tile in (0, 11):
        pixels = b.js(
            "const c = document.querySelectorAll('.tile canvas')[arguments[0]]; return [...c.getContext('2d').getImageData(0, 0, 28, 28).data].filter((_, i) => i % 4 === 0)",
            tile,
        )
        wanted = [max(0, min(255, math.floor((v + 1) * 127.5 + 0.5))) for v in numbers[tile * 784 : (tile + 1) * 784]]
        expect(pixels == wanted, f"tile {tile} is not sample {tile}")

    check("draw: a sample's trajectory, its encoding, interpolation with another, its seed")
    b.click(".tile:nth-child(6)")
    b.wait("return document.querySelectorAll('.strip canvas').length === 12", what="the trajectory")
    last = b.js(
        "const p = (c) => c.getContext('2d').getImageData(0, 0, 28, 28).data.join(); return p([...document.querySelectorAll('.strip canvas')].at(-1)) === p(document.querySelectorAll('.tile canvas')[5])"
    )
    expect(last, "the trajectory does not end at the sample")
    b.click_text("button", "Encode")
    text = b.wait(
        "const s = document.querySelector('[aria-label=\"One sample\"] .status').textContent; return s.includes('mean error') && s",
        what="the encoding",
    )
    expect(float(re.search(r"error of ([\d.]+)", text).group(1)) < 0.1, text)
    b.click_text("button", "Interpolate with …")
    b.click(".tile:nth-child(9)")
    b.wait("return document.querySelectorAll('.strip canvas').length === 9", what="the interpolation")
    b.click_text("button", "Keep its seed")
    b.wait(
        "return document.querySelector('.kept figcaption')?.textContent === 'seed 3, number 5'", what="the kept seed"
    )
    b.click_text("button", "Draw it")
    b.wait(
        "return document.querySelectorAll('.tile:not(:disabled)').length === 1 && document.querySelectorAll('.tile').length === 1",
        what="the kept sample",
    )
    npy = b.js("return document.querySelector('header a[download][href*=npy]').getAttribute('href')")
    expect(read_npy(studio.bytes(b, npy))[1] == data[5 * 784 * 4 : 6 * 784 * 4], "the kept seed draws another sample")

    check("draw: a long one is cancelled")
    set_field(b, "Samples", "256")
    b.click_text("button", "Draw")
    b.wait("return document.querySelector('progress:not(.idle)')", what="progress")
    b.click_text("button", "Cancel")
    b.wait(
        "return document.querySelector('[aria-label=Samples] .status').textContent.startsWith('Cancelled')",
        what="the end of the job",
    )
    studio.quiet(b)


# ---- Paint ----


def paint(studio, b):
    check("paint: a sample is taken, a part painted over, and completed with the bits of psld inpaint")
    studio.view(b, "paint")
    b.wait(
        "return document.querySelector('#paint-form .small + .small, #paint-form .tight .small')?.textContent.includes('parameters')",
        what="the model",
    )
    for label, text in (("Completions", "2"), ("Evaluations", "6"), ("Seed", "4")):
        set_field(b, label, text)
    b.click_text("button", "Take a sample")
    b.wait(
        "return document.querySelector('.easel .empty').hidden && !document.querySelector('#view .paint-stage button:disabled:not(.main)')?.textContent.includes('Take')",
        what="the sample",
    )
    b.wait(
        "return [...document.querySelectorAll('#view [role=status]')].some((e) => e.textContent === 'sample of seed 4')",
        what="the sample",
    )
    b.drag(".easel", (0.3, 0.6), (0.5, 0.6), (0.7, 0.8))
    mask = base64.b64decode(
        b.js(
            "const m = document.querySelector('.easel .mask'), c = document.createElement('canvas'); c.width = c.height = 28; const x = c.getContext('2d'); x.fillRect(0, 0, 28, 28); x.drawImage(m, 0, 0); return c.toDataURL().split(',')[1]"
        )
    )
    unknown = b.js(
        "return [...document.querySelector('.easel .mask').getContext('2d').getImageData(0, 0, 28, 28).data].filter((_, i) => i % 4 === 3).map((a) => a > 127)"
    )
    expect(20 < sum(unknown) < 500, f"{sum(unknown)} pixels are painted over")
    b.click_text("button", "Complete")
    b.wait(
        "return document.querySelectorAll('.paint-stage .tile:not(:disabled)').length === 2",
        what="the completions",
        seconds=120,
    )
    pathlib.Path("mask.png").write_bytes(mask)
    psld("sample", DIGITS, "-n", 1, "--seed", 4, "-o", "taken.npy")
    psld(
        "inpaint",
        DIGITS,
        "--image",
        "taken.npy",
        "--mask",
        "mask.png",
        "-n",
        2,
        "--nfe",
        6,
        "--seed",
        4,
        "-o",
        "completed.npy",
    )
    npy = b.js("return document.querySelector('.paint-stage a[download][href*=npy]').getAttribute('href')")
    shape, data = read_npy(studio.bytes(b, npy))
    expect(shape == (2, 1, 28, 28), f"the completions have the shape {shape}")
    expect(data == read_npy(pathlib.Path("completed.npy").read_bytes())[1], "other bits than psld inpaint")
    check("paint: the pictures of the command line are saved, and in a terminal it does the same")
    b.click_text("button", "Save its pictures")
    b.wait("return document.querySelector('.paint-stage .command button').hidden", what="the pictures to be saved")
    words = shlex.split(b.text(".paint-stage .command code"))
    expect(words[0] == "psld" and "picture-1.npy" in words and "mask-1.png" in words, f"the command is {words}")
    done = subprocess.run([PSLD, *words[1:]], cwd=FOLDER, capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    expect(read_npy((FOLDER / "samples.npy").read_bytes())[1] == data, "other bits than in the browser")

    taken = struct.unpack("<784f", read_npy(pathlib.Path("taken.npy").read_bytes())[1])
    numbers = struct.unpack("<1568f", data)
    for i in range(1568):
        expect(unknown[i % 784] or numbers[i] == taken[i % 784], f"the known pixel {i % 784} has changed")
    expect(any(numbers[i] != taken[i] for i in range(784)), "nothing was drawn anew")

    check("paint: a dropped picture is enlarged")
    psld("sample", DIGITS, "-n", 1, "--seed", 9, "--nfe", 8, "-o", "nine.png")
    file = base64.b64encode(pathlib.Path("nine.png").read_bytes()).decode()
    b.js(
        """const data = new DataTransfer(), bytes = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0));
        data.items.add(new File([bytes], 'nine.png', {type: 'image/png'}));
        document.querySelector('.easel').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))""",
        file,
    )
    b.wait(
        "return [...document.querySelectorAll('#view [role=status]')].some((e) => e.textContent === 'nine.png')",
        what="the picture",
    )
    b.click_text("button", "Enlarge")
    b.click("#view .paint-stage .main")
    b.wait(
        "return document.querySelectorAll('.given-row canvas').length === 2 && document.querySelectorAll('.paint-stage .tile:not(:disabled)').length === 2 && !document.querySelector('.paint-stage progress:not(.idle)')",
        what="the enlarged pictures",
        seconds=120,
    )
    studio.quiet(b)


# ---- Runs ----


def steps_of(path):
    return [json.loads(line)["step"] for line in (FOLDER / path / "log.jsonl").read_text().splitlines()]


def figure(b, key):
    return b.text(f"[data-figure={key}]")


def runs(studio, b):
    check("runs: one is started, its curves and pictures come while it trains")
    studio.view(b, "runs")
    b.click_text("#view .side button", "Start a run")
    b.wait("return document.querySelector('dialog[open] option[value=\"toy:moons\"]')", what="the toy data")
    b.choose("dialog[open] select", "toy:moons")
    b.type("dialog[open] input:not([type])", "moons-run")
    set_field(b, "Steps", "100000")
    b.type(
        "dialog[open] textarea",
        "train.batch=16\ntrain.evaluate_every=10\ntrain.evaluate_count=16\ntrain.sample_every=20\ntrain.sample_count=50\ntrain.sample_nfe=4\ntrain.warmup=10",
    )
    b.click_text("dialog[open] button", "Start")
    b.wait("return document.querySelector('.item.on')?.dataset.run === 'moons-run'", what="the run in the list")
    step = "const t = document.querySelector('[data-figure=step]')?.textContent; return t && Number(t.split(' of ')[0].replace(/\\D/g, ''))"
    b.wait(step.replace("return t &&", "return t && 25 <"), what="25 steps", seconds=90)
    b.wait(
        "return document.querySelectorAll('[aria-label=Curves] .curve')[0]?.getAttribute('d').length > 60 && document.querySelector('[aria-label=Pictures] img')?.naturalWidth > 0",
        what="curves and a picture",
        seconds=60,
    )
    expect("training" in b.text("[aria-label=Run] .tag"), b.text("[aria-label=Run] .tag"))

    check("runs: it is stopped with a checkpoint, and goes on where it was")
    b.click_text("[aria-label=Run] button", "Stop")
    b.wait(
        "return document.querySelector('[aria-label=Run] .tag')?.textContent === 'stopped'",
        what="the run to stop",
        seconds=60,
    )
    done = steps_of("moons-run")
    expect(
        (FOLDER / "moons-run" / "checkpoints" / f"step-{done[-1]:09d}.safetensors").exists(),
        f"no checkpoint of step {done[-1]}",
    )
    b.type("[aria-label='Until step']", str(done[-1] + 15))
    b.click_text("[aria-label=Run] button", "Resume")
    b.wait(
        "return document.querySelector('[aria-label=Run] .tag')?.textContent === 'finished'",
        what="the run to finish",
        seconds=90,
    )
    expect(steps_of("moons-run") == list(range(1, done[-1] + 16)), "a step is missing or there twice")
    shown = b.wait(
        "const t = document.querySelector('[data-figure=step]').textContent.replace(/[^\\d o]/g, ''); return t",
        what="the last step",
    )
    expect(shown.replace(" ", "").startswith(f"{done[-1] + 15}o"), f"the page shows {shown}")

    check("runs: a run of another process is watched, not touched")
    other = subprocess.Popen(
        [
            PSLD,
            "train",
            "toy:moons",
            "-o",
            str(FOLDER / "other"),
            "train.batch=16",
            "train.steps=100000",
            "train.sample_every=0",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        b.wait(
            "return [...document.querySelectorAll('.item')].find((e) => e.dataset.run === 'other')?.textContent.includes('trained elsewhere')",
            what="the other run",
            seconds=60,
        )
        b.click("[data-run=other] .name")
        b.wait(
            "return document.querySelector('[aria-label=Run] .tag')?.textContent.includes('watched only')",
            what="the other run",
        )
        expect(
            b.js(
                "return [...document.querySelectorAll('[aria-label=Run] button')].find((e) => e.textContent === 'Stop').disabled"
            ),
            "it could be stopped",
        )

        check("runs: curves over one another, and how the settings differ")
        b.click("[data-run='moons-run'] input")
        b.wait(
            "return document.querySelectorAll('[aria-label=Curves] .legend .swatch').length >= 2 && document.querySelector('.settings')?.textContent.includes('train.evaluate_every')",
            what="the differences",
        )
        expect("data.path" not in b.text(".settings"), "settings that are the same are listed")
    finally:
        other.terminate()
        other.wait(timeout=60)
    studio.quiet(b)


# ---- Compare ----


def compare(studio, b):
    check("compare: the results of a sweep, each as one point")
    studio.view(b, "compare")
    b.wait("return document.querySelectorAll('#view .plot .mark').length === 6", what="six results")
    rows = [json.loads(line) for line in (FOLDER / "sweep" / "results.jsonl").read_text().splitlines()]
    shown = b.js("return [...document.querySelectorAll('#view tbody tr')].map((r) => r.lastChild.textContent)")
    smallest = min(row["swd"] for row in rows)
    expect(
        len(shown) == 6 and abs(float(shown[0]) - smallest) <= 1e-3 * smallest,
        f"the table begins with {shown[:1]}, the best is {smallest}",
    )
    b.click("#view .legend-button")
    b.wait("return document.querySelectorAll('#view .plot .mark').length === 3", what="one group to be hidden")
    b.click("#view .legend-button")
    b.js("document.querySelector('#view .plot .frame').focus()")
    b.keys("right")
    expect("evaluations" in b.text("#view .plot [role=status]"), "the keyboard does not read a point")
    studio.quiet(b)


# ---- All views ----


def names(b, view):
    """Everything that can be used has a name for a screen reader."""
    for node in b.cdp("Accessibility.getFullAXTree", {})["nodes"]:
        role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
        if node.get("ignored") or role not in NAMED_ROLES:
            continue
        expect(name.strip(), lambda: f"{view}: a {role} has no name: {json.dumps(node)[:300]}")


def phone(studio):
    check("a phone, dark: no view is wider than the screen, and everything has a name")
    with Browser(390, 844, dark=True) as b:
        studio.open(b)
        b.wait("return document.querySelector('.readings')", what="the readings")
        for view in ("lab", "draw", "paint", "runs", "compare"):
            studio.view(b, view)
            time.sleep(0.5)
            wide = b.js("return [document.documentElement.scrollWidth, innerWidth]")
            expect(wide[0] <= wide[1], f"{view} is {wide[0]} wide on a screen of {wide[1]}")
            names(b, view)
        expect(b.js("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 24)", "it is not dark")
        studio.quiet(b)


def size():
    check("the page is under 300 kB in all, and has no inline script or style")
    files = [path for path in (SOURCE / "web").iterdir() if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    expect(0 < total < 300000, f"the page has {total} bytes")
    page = (SOURCE / "web" / "index.html").read_text()
    expect(
        not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|//[\w.]+/", page),
        "something inline, or from elsewhere",
    )


def walk():
    size()
    FOLDER.mkdir()
    FOLDER.joinpath("sweep.yaml").write_text(
        f"name: small\nmodels: {{ring: {SOURCE}/examples/ring.yaml}}\nprocesses: [psld]\nmetrics: swd\nsamplers: [em, sscs]\n"
        "grids: [quadratic]\nnfe: [5, 10, 20]\nnumber: 500\n"
    )
    psld("sweep", FOLDER / "sweep.yaml", "-o", FOLDER / "sweep")
    studio = Studio()
    try:
        with Browser(1280, 900) as b:
            studio.open(b)
            for view in (lab, draw, paint, runs, compare):
                view(studio, b)
            check("every control of every view has a name for screen readers")
            for view in ("lab", "draw", "paint", "runs", "compare"):
                studio.view(b, view)
                names(b, view)
        phone(studio)
    except Failure as problem:
        fail(str(problem))
    finally:
        studio.close()


if __name__ == "__main__":
    if not programs():
        print("skipped: no Chromium with its driver; tools/bootstrap test installs them")
        sys.exit(77)
    if subprocess.run([PSLD, "serve", "--help"], capture_output=True).returncode:
        print("skipped: this build of psld has no server")
        sys.exit(77)
    walk()
