"""An engine in JavaScript: Node's own `fetch` must get through, with all that it adds by itself."""

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import trio
from tabwarden_adapters.host import SiteMode

from tests.host.support import FakeHost, serving

NODE = shutil.which("node")
SCRIPT = """
const { readFileSync } = require("node:fs");
const { controlPort, token } = JSON.parse(readFileSync(process.argv[1], "utf8"));
const ask = async (path, body) => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const init = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  const reply = await fetch(`http://127.0.0.1:${controlPort}${path}`, init);
  return [reply.status, await reply.json()];
};
(async () => {
  const origin = "https://shop.test";
  console.log(JSON.stringify([
    await ask(`/policy?origin=${encodeURIComponent(origin)}`),
    await ask("/approve", { kind: "site", origin, summary: "x" }),
    await ask("/log", { type: "x", origin, text: "é".repeat(500000), tokens: 1, at: Date.now() }),
    await ask("/nowhere"),
  ]));
})();
"""


@pytest.mark.skipif(NODE is None, reason="node is not on the PATH")
async def test_nodes_fetch(tmp_path: Path) -> None:
    host = FakeHost()
    host.modes["https://shop.test"] = SiteMode.ASK
    async with serving(tmp_path, host):
        command = [str(NODE), "-e", SCRIPT, str(tmp_path / "home" / "host.json")]
        ran = await trio.to_thread.run_sync(
            partial(subprocess.run, command, capture_output=True, text=True, timeout=60, check=True)
        )
        replies = json.loads(ran.stdout)
    assert replies[:3] == [[200, {"mode": "ask"}], [200, {"answer": "no"}], [200, {}]]
    assert (replies[3][0], replies[3][1]["error"]["code"]) == (404, "unknown-route")
