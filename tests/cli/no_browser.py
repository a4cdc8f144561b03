"""A program in the browser's place that answers every command and has no tabs."""

import sys
from pathlib import Path

BROWSER = f"""#!{sys.executable} -S
import json, os
VERSION = dict.fromkeys(["protocolVersion", "product", "revision", "userAgent", "jsVersion"], "no browser")
buffer = b""
while chunk := os.read(3, 65536):
    *messages, buffer = (buffer + chunk).split(b"\\0")
    for message in map(json.loads, messages):
        result = VERSION if message["method"] == "Browser.getVersion" else {{}}
        answer = {{"id": message["id"], "result": result}}
        if "sessionId" in message:
            answer["sessionId"] = message["sessionId"]
        os.write(4, json.dumps(answer).encode() + b"\\0")
"""


def without_tabs(home: Path) -> dict[str, str]:
    """The variables with which `serve` starts it. It is written into `home`."""
    browser = home / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    return {"TABWARDEN_CHROMIUM": str(browser)}
