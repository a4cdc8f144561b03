"""Prometheus and Phoenix themselves, each on loopback with a folder of its own. `make test-backends` brings
them."""

import json
import os
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
PHOENIX = ROOT / "build" / "phoenix" / "bin" / "phoenix"


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def answered(url: str) -> Any:
    """What an API says, decoded."""
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - our own
        return json.load(answer)


@contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Callable[[str], Any]]:
    """Prometheus while the block runs: a function that asks its API."""
    file = folder / "prometheus.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(command, os.environ, "ready to receive web requests"):
        yield lambda path: answered(f"http://127.0.0.1:{port}/api/v1/{path}")["data"]


@contextmanager
def phoenix(folder: Path) -> Iterator[str]:
    """Phoenix while the block runs: its address. It tells nobody of itself and knows nothing of this user."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
        "PHOENIX_LOG_MIGRATIONS": "false",
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
    }
    with running([str(PHOENIX), "serve"], environment, "Uvicorn running on"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(command: list[str], environment: Mapping[str, str], ready: str) -> Iterator[None]:
    """A program while the block runs, from when it has written `ready`."""
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        draining = threading.Thread(target=_drain, args=(process.stdout,), daemon=True)
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if ready in line:
                    break
            else:
                raise AssertionError("".join(said))
            draining.start()
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
            if draining.ident is not None:
                draining.join()


def _drain(output: IO[str]) -> None:
    """A full pipe would stop the program."""
    for _ in output:
        pass
