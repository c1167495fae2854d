"""A headless Chromium driven over a pipe: opens pages, runs scripts in them, collects what they log
and what they ask the network for. Needs nothing but Debian's chromium and this file."""

import base64
import itertools
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time


def find_chromium():
    """The program, or None. Debian's wrapper is passed by: it reads files of the user's."""
    given = os.environ.get("HONE_CHROMIUM")
    if given:
        return given
    for name in ("/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


class Browser:
    """with Browser() as b: page = b.open(path, 1280, 800)"""

    FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
             "--proxy-server=127.0.0.1:9", "--remote-debugging-pipe")

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="hone_browser_")
        to_read, self.to = os.pipe()
        self.frm, to_write = os.pipe()

        def hand_over():  # the browser reads file 3 and writes file 4
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [find_chromium(), *self.FLAGS, f"--user-data-dir={self.folder}", "about:blank"],
            preexec_fn=hand_over, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.numbers = itertools.count(1)
        self.buffer = b""
        self.events = []
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.frm)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        """The next message, or None at the deadline."""
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.frm], [], [], left)[0]:
                return None
            part = os.read(self.frm, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, timeout=120, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + timeout
        while True:
            got = self.receive(deadline)
            if got is None:
                raise RuntimeError(f"{method}: no answer in {timeout} s")
            if got.get("id") == number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']['message']}")
                return got["result"]
            self.events.append(got)

    def open(self, path, width=1280, height=900, dark=False):
        return Page(self, pathlib.Path(path).resolve().as_uri(), width, height, dark)


class Page:
    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        self.url = url
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'yes' && document.readyState === 'complete'")

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def run(self, script):
        """The value of an expression in the page."""
        got = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{script[:200]}: {describe(got['exceptionDetails'])}")
        return got["result"].get("value")

    def wait(self, condition, timeout=60):
        deadline = time.monotonic() + timeout
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.url}: never came: {condition}\n" + "\n".join(self.problems()))
            time.sleep(0.05)

    def press(self, key, code=None, virtual=0, modifiers=0):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode=virtual, modifiers=modifiers)

    def screenshot(self, path, whole=False):
        size = {}
        if whole:
            area = self.call("Page.getLayoutMetrics")["cssContentSize"]
            size = {"captureBeyondViewport": True,
                    "clip": {"x": 0, "y": 0, "width": area["width"], "height": area["height"], "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **size)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def settle(self):
        """Lets late messages and requests arrive."""
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def own_events(self):
        return [e for e in self.browser.events if e.get("sessionId") == self.session]

    def problems(self):
        """Console errors and warnings, exceptions, and every request but that for the page itself."""
        out = []
        for event in self.own_events():
            params = event.get("params", {})
            kind = event["method"]
            if kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                out.append("console: " + " ".join(str(a.get("value", a.get("description")))
                                                  for a in params["args"]))
            elif kind == "Log.entryAdded":
                out.append("log: " + params["entry"]["text"])
            elif kind == "Runtime.exceptionThrown":
                out.append("exception: " + describe(params["exceptionDetails"]))
            elif kind == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if url not in (self.url, "about:blank") and not url.startswith((self.url + "#", "data:")):
                    out.append("request: " + url)
            elif kind == "Page.javascriptDialogOpening":
                out.append("dialog: " + params["message"])
        return out


def describe(details):
    text = details.get("exception", {}).get("description") or details.get("text", "")
    return f"{text} (line {details.get('lineNumber')})"
