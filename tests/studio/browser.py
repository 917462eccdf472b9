"""A small driver of Chromium: WebDriver over HTTP, with the standard library alone."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {
    "enter": "\ue007",
    "tab": "\ue004",
    "left": "\ue012",
    "up": "\ue013",
    "right": "\ue014",
    "down": "\ue015",
    "space": " ",
    "escape": "\ue00c",
}


def programs():
    """Paths of chromium and its driver, or None."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


class Failure(Exception):
    pass


class Browser:
    def __init__(self, width=1280, height=900, dark=False, touch=False):
        chromium, driver = programs()
        self.folder = tempfile.mkdtemp(prefix="psld-studio-")
        self.process = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        for line in self.process.stdout:
            if "successfully on port " in line:
                self.root = "http://127.0.0.1:" + line.rsplit("on port ", 1)[1].strip().rstrip(".")
                break
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            "--no-proxy-server",
            f"--window-size={width},{height}",
            f"--user-data-dir={self.folder}",
        ]
        options = {"binary": chromium, "args": arguments, "prefs": {"download.default_directory": self.folder}}
        if width < 600:
            options["mobileEmulation"] = {
                "deviceMetrics": {"width": width, "height": height, "pixelRatio": 2, "touch": touch}
            }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self.session = ""
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = "/session/" + answer["sessionId"]
        self.cdp(
            "Emulation.setEmulatedMedia",
            {
                "features": [
                    {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                    {"name": "prefers-reduced-motion", "value": "reduce"},
                ]
            },
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        except (Failure, OSError):
            pass
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- The protocol ----

    def call(self, method, path, body=None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(
            self.root + self.session + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as problem:
            value = json.load(problem)["value"]
            raise Failure(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def cdp(self, command, parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def js(self, script, *values):
        """The value of a function body that gets `values` as arguments; promises are awaited."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(values)})

    def log(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def screenshot(self, path, full=False):
        shot = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.cdp("Page.getLayoutMetrics", {})["cssContentSize"]
            shot["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.cdp("Page.captureScreenshot", shot)["data"]))

    # ---- Elements ----

    def find(self, css):
        return self.call("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        """A click as the mouse makes it: what is hidden or covered cannot be clicked."""
        element = self.find(css)
        self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", {ELEMENT: element})
        self.call("POST", f"/element/{element}/click")

    def click_text(self, tag, text):
        """Clicks the visible element of this tag with this text."""
        found = self.js(
            "return [...document.querySelectorAll(arguments[0])].find((e) => e.offsetParent && e.textContent.trim() === arguments[1])",
            tag,
            text,
        )
        if not found:
            raise Failure(f"no {tag} with the text {text!r}")
        self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
        self.call("POST", f"/element/{found[ELEMENT]}/click")

    def type(self, css, text):
        """Replaces what a field has, by the keyboard."""
        element = self.find(css)
        self.js(
            "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'}); arguments[0].focus(); arguments[0].select()",
            {ELEMENT: element},
        )
        self.call("POST", f"/element/{element}/value", {"text": text})

    def choose(self, css, value):
        if not self.js(
            "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change', {bubbles: true})); return s.value === arguments[1]",
            css,
            value,
        ):
            raise Failure(f"{css} does not have the choice {value!r}")

    def keys(self, *keys):
        actions = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def drag(self, css, *places):
        """The mouse pressed over an element along places in [0, 1] x [0, 1]."""
        box = self.js(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
            css,
        )
        moves = [
            {"type": "pointerMove", "duration": 20, "x": round(box[0] + x * box[2]), "y": round(box[1] + y * box[3])}
            for x, y in places
        ]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self.call(
            "POST",
            "/actions",
            {
                "actions": [
                    {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
                ]
            },
        )

    def text(self, css):
        return self.js("const e = document.querySelector(arguments[0]); return e ? e.textContent : null", css)

    def wait(self, script, *values, seconds=60, what=None):
        """The first value of `script` that is true."""
        end = time.monotonic() + seconds
        while True:
            value = self.js(script, *values)
            if value:
                return value
            if time.monotonic() > end:
                raise Failure(f"waited in vain for {what or script}")
            time.sleep(0.05)
