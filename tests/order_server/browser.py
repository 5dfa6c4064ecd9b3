"""A headless Chromium, spoken to in W3C's WebDriver protocol: as much of it as the tests need."""

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import urllib.request

from instances import eventually, free_port

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for a reference to an element


def there_is_one():
    return bool(shutil.which("chromedriver") and shutil.which("chromium"))


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="zkasio-chromium.", ignore_cleanup_errors=True)
        port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        try:
            eventually(lambda: self.call("GET", "/status")["ready"], of="chromedriver answers")
            arguments = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-gpu",
                         "--disable-dev-shm-usage", f"--user-data-dir={self.profile.name}"]
            options = {"binary": shutil.which("chromium"), "args": arguments}
            capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
            self.url += f"/session/{made['sessionId']}"
        except BaseException:
            self.close()
            raise

    def close(self):
        with contextlib.suppress(OSError):
            if "/session/" in self.url:
                self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.profile.cleanup()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """What a JavaScript returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{found[ELEMENT]}/click", {})

    def press(self, key):
        """A key of the keyboard, for whatever has the focus."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def look(self, width, height, dark=False, phone=False):
        """How large the window is, and what its user prefers."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1.5 if phone else 1, "mobile": phone}
        self.devtools("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", {"features": [scheme]})

    def devtools(self, command, parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def picture(self, file):
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.call("GET", "/screenshot")))

    def console(self):
        """What has come to the console since the last time: warnings and errors."""
        return [e for e in self.call("POST", "/se/log", {"type": "browser"}) if e["level"] in ("WARNING", "SEVERE")]
