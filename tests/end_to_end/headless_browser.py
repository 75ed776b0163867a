"""Drive a headless Chromium with the network off, through the DevTools protocol on a pair of pipes.

A pipe, unlike a debugging port, also reaches a browser that runs in a network namespace of its own, where not
even the loopback interface is up.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LOCAL_SCHEMES = ("file:", "data:", "blob:", "about:")
# Chromium reads commands on descriptor 3 and writes answers on descriptor 4.
LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
WHEN_SETTLED = """
(async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  await document.fonts.ready;
  await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 100)));
  return true;
})()
"""


def find_browser() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def network_off() -> list[str]:
    """Return the command prefix that runs a program without any network; empty where that is not allowed."""
    if shutil.which("unshare"):
        for prefix in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
            if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
                return prefix
    return []


@dataclass
class Visit:
    """What a browser met on one page: errors in its console, requests that left the machine, failed loads."""

    session: str
    url: str
    errors: list[str] = field(default_factory=list)
    outside_requests: list[str] = field(default_factory=list)


class HeadlessBrowser:
    """One Chromium process; ``visit`` opens a page, ``evaluate`` asks it something."""

    def __init__(self, program: str, profile: Path, timeout: float = 60.0) -> None:
        self.timeout = timeout
        self.network_off = network_off()
        self.events: list[dict] = []
        self._last_id = 0
        self._unread = b""
        self._log = (profile / "browser.log").open("wb")
        commands_out, self._write_end = os.pipe()
        self._read_end, answers_in = os.pipe()
        # High numbers, so that neither is overwritten while they become 3 and 4.
        inherited = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (commands_out, answers_in)]
        flags = ["--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
        flags += ["--disable-sync", "--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND"]
        flags += [f"--user-data-dir={profile / 'profile'}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        command = [sys.executable, "-c", LAUNCH, *map(str, inherited), *self.network_off, program, *flags]
        self._process = subprocess.Popen(
            command, pass_fds=inherited, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        for end in (*inherited, commands_out, answers_in):
            os.close(end)

    def close(self) -> None:
        """End the browser."""
        try:
            self.send("Browser.close")
            self._process.wait(timeout=10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._write_end)
            os.close(self._read_end)
            self._log.close()

    def send(self, method: str, session: str | None = None, **parameters: object) -> dict:
        """Send a command and return its result; events that arrive meanwhile are kept in ``events``."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write_end, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, deadline: float) -> dict:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read_end], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser did not answer within {self.timeout} s")
            chunk = os.read(self._read_end, 1 << 20)
            if not chunk:
                last_words = Path(self._log.name).read_text(errors="replace")[-2000:]
                raise EOFError(f"the browser ended: {last_words}")
            self._unread += chunk
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def visit(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Visit:
        """Open a page, wait until its equations and fonts are there, and return what went wrong meanwhile."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        visit = Visit(session, url)
        self.resize(visit, width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", session, features=[scheme])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable", session)
        self.send("Page.navigate", session, url=url)
        deadline = time.monotonic() + self.timeout
        while not any(self._is_loaded(event, session) for event in self.events):
            self.events.append(self._receive(deadline))
        self.evaluate(visit, WHEN_SETTLED)
        self._collect(visit)
        return visit

    @staticmethod
    def _is_loaded(event: dict, session: str) -> bool:
        return event.get("method") == "Page.loadEventFired" and event.get("sessionId") == session

    def resize(self, visit: Visit, width: int, height: int) -> None:
        """Give a page's window another size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", visit.session, **size)

    def evaluate(self, visit: Visit, expression: str) -> object:
        """Return the value of a JavaScript expression on a page."""
        answer = self.send(
            "Runtime.evaluate", visit.session, expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{visit.url}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, visit: Visit, path: Path, *, full_page: bool = False) -> None:
        """Save what a page looks like as PNG."""
        picture = self.send("Page.captureScreenshot", visit.session, captureBeyondViewport=full_page)
        path.write_bytes(base64.b64decode(picture["data"]))

    def leave(self, visit: Visit) -> None:
        """Collect the last events of a page and close it."""
        self._collect(visit)
        self.send("Page.close", visit.session)

    def _collect(self, visit: Visit) -> None:
        """Sort the events of a page into its errors and its requests to the outside."""
        others = []
        for event in self.events:
            if event.get("sessionId") != visit.session:
                others.append(event)
                continue
            parameters = event.get("params", {})
            match event.get("method"):
                case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "assert", "warning"):
                    words = [str(part.get("value", part.get("description"))) for part in parameters["args"]]
                    visit.errors.append(f"console.{parameters['type']}: {' '.join(words)}")
                case "Runtime.exceptionThrown":
                    details = parameters["exceptionDetails"]
                    visit.errors.append(details.get("exception", {}).get("description", details["text"]))
                case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                    visit.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
                case "Network.requestWillBeSent":
                    address = parameters["request"]["url"]
                    if not address.startswith(LOCAL_SCHEMES):
                        visit.outside_requests.append(address)
                case _:
                    pass
        self.events = others
