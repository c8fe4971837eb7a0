"""A headless Chromium that tests drive by the DevTools protocol, over a pair of pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-pipe",
)

NO_WEBGL = "delete window.WebGLRenderingContext;"

PATIENCE = 30.0
"""Seconds after which an answer is missing."""


class Browser:
    """A browser with one tab after another; use it in a ``with`` statement."""

    def __init__(self, profile):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        command = ["bash", "-c", script, "bash", CHROMIUM, *OPTIONS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest = b""
        self._number = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        os.close(self._out)
        os.close(self._in)

    def call(self, method, session=None, **parameters):
        """Return the result of a method of the protocol; events meanwhile go to `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            found = os.read(self._in, 1 << 16) if ready else b""
            assert found, "the browser does not answer"
            self._rest += found
        text, self._rest = self._rest.split(b"\0", 1)
        return json.loads(text)

    def open(self, address, *, width=800, height=800, dark=False, webgl=True, phone=False):
        """Open a page in a tab of its own and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = Tab(self, target, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            tab.call(f"{domain}.enable")
        scale = 2 if phone else 1
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone}
        tab.call("Emulation.setDeviceMetricsOverride", **size)
        tab.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        if not webgl:
            tab.call("Page.addScriptToEvaluateOnNewDocument", source=NO_WEBGL)
        tab.call("Page.navigate", url=str(address))
        tab.wait_for("document.readyState === 'complete'")
        return tab


class Tab:
    """A tab of a browser."""

    def __init__(self, browser, target, session):
        self.browser = browser
        self.target = target
        self.session = session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        """Return the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, expression):
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def seen(self):
        """Return what the view says of itself, after it has drawn."""
        self.value(
            "window.drawnAt = 0; requestAnimationFrame(() => requestAnimationFrame(() => "
            "{ window.drawnAt = 1; }))"
        )
        self.wait_for("window.drawnAt === 1")
        return self.value("({ ...document.getElementById('view').dataset })")

    def middle(self):
        """Return the middle of the view in pixels of the window."""
        self.value("document.getElementById('view').scrollIntoView({ block: 'center' })")
        frame = "document.getElementById('view').getBoundingClientRect()"
        return self.value(f"[{frame}.x + {frame}.width / 2, {frame}.y + {frame}.height / 2]")

    def drag(self, across, down, *, shift=False):
        """Drag with the mouse from the middle of the view."""
        x, y = self.middle()
        common = {"button": "left", "buttons": 1, "clickCount": 1, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **common)
        for share in (0.5, 1.0):
            where = {"x": x + share * across, "y": y + share * down}
            self.call("Input.dispatchMouseEvent", type="mouseMoved", **where, **common)
        common["buttons"] = 0
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **where, **common)

    def wheel(self, down):
        x, y = self.middle()
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=down)

    def key(self, name, *, shift=False):
        """Press a key, by its name in events of the page."""
        text = {"text": name} if len(name) == 1 else {}
        modifiers = 8 if shift else 0
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, modifiers=modifiers, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, modifiers=modifiers)

    def touch(self, kind, *points):
        where = [{"x": x, "y": y, "id": place} for place, (x, y) in enumerate(points)]
        self.call("Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=where)

    def picture(self, path=None):
        """Return the bytes of a picture of the window as PNG, and write it to a path."""
        self.call("Page.bringToFront")
        contents = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path:
            Path(path).write_bytes(contents)
        return contents

    def messages(self):
        """Return everything that the page has said on the console, errors included."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self._events() if event["method"] in kinds]

    def requests(self):
        """Return the addresses that the page has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._events()
            if event["method"] == "Network.requestWillBeSent"
        ]

    def _events(self):
        self.value("0")  # what came before it has arrived
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
