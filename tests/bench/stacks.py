"""What is measured: each stack is a server process and the client that calls it.

**A server** is a module run as `python -m <server> <folder>`: it serves on 127.0.0.1, port 0, keeps its files
(an audit log, certificates) in `folder`, and gives its life to `tests.bench.control.serve_control`, which
prints one JSON line with at least `{"address": "127.0.0.1:<port>"}` when ready, answers each line of input
with its counters, and ends at end of input. The counters only grow: `calls` (completed), `signatures`
(ML-DSA-87 signatures made) and `syncs` (fsync or fdatasync calls).

**A client** is named `"module:function"` and is `async def connect(ready, index) -> Client`: `ready` is the
server's JSON line and `index` numbers the client from 0, so that a stack may use a principal for each.

The subject is plugged in by two modules, `subject_server.py` and `subject_client.py` (functions `connect` and
`forge`), and by nothing else; without them its goals read "not measured" and fail. Its server must allow for
`measure.IDLE_MANY` connections and any rate of calls.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

Ready = Mapping[str, Any]


class Client(Protocol):
    """One caller with one call in flight at the most."""

    async def call(self) -> None:
        """Make one no-op call; return when its success is known; raise on anything else."""
        ...

    async def aclose(self) -> None:
        """Close whatever is open."""
        ...


Connect = Callable[[Ready, int], Awaitable[Client]]
Forge = Callable[[Ready], Callable[[], bytes]]
"""From the ready line, a maker of whole HTTP requests, each fresh and well formed but for its proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One thing to measure. `env` is set for both its processes."""

    name: str
    title: str
    server: str
    client: str
    forge: str | None = None
    facts: str | None = None
    env: Mapping[str, str] | None = None


# Both ends of the mutual TLS peers: pyOpenSSL cannot set groups, but OpenSSL reads them from a file.
_TLS_ENV = {"OPENSSL_CONF": str(Path(__file__).with_name("mtls_openssl.cnf"))}

SUBJECT = Stack(
    name="tabwarden",
    title="Tabwarden",
    server="tests.bench.subject_server",
    client="tests.bench.subject_client:connect",
    forge="tests.bench.subject_client:forge",
)
NAIVE = Stack(
    name="naive",
    title="naive, Quart-Trio",
    server="tests.bench.naive_server",
    client="tests.bench.naive_client:connect",
)
BEARER_TRIO = Stack(
    name="bearer-trio",
    title="bearer, httptools",
    server="tests.bench.bearer_trio",
    client="tests.bench.bearer_client:connect",
)
BEARER_QUART = Stack(
    name="bearer-quart",
    title="bearer, Quart-Trio",
    server="tests.bench.bearer_quart",
    client="tests.bench.bearer_client:connect",
)
MTLS_NEW = Stack(
    name="mtls-new",
    title="mTLS, new",
    server="tests.bench.mtls_server",
    client="tests.bench.mtls_client:connect_new",
    facts="tests.bench.mtls_client:facts",
    env=_TLS_ENV,
)
MTLS_RESUMED = Stack(
    name="mtls-resumed",
    title="mTLS, resumed",
    server="tests.bench.mtls_server",
    client="tests.bench.mtls_client:connect_resumed",
    env=_TLS_ENV,
)
MTLS_KEPT = Stack(
    name="mtls-kept",
    title="mTLS, kept alive",
    server="tests.bench.mtls_server",
    client="tests.bench.mtls_client:connect_kept",
    env=_TLS_ENV,
)
PEERS = (NAIVE, BEARER_TRIO, BEARER_QUART, MTLS_NEW, MTLS_RESUMED, MTLS_KEPT)


def stacks() -> tuple[Stack, ...]:
    """The subject, if it is plugged in, and its peers."""
    return (SUBJECT, *PEERS) if find_spec(SUBJECT.server) is not None else PEERS
