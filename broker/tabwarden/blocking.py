"""A blocking face of `AgentClient` for scripts: one call at a time, from one thread."""

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tabwarden.client import AgentClient
from tabwarden.model import ConnectionDescriptor


class BlockingClient:
    """Use as a context manager; raises what `AgentClient` raises."""

    def __init__(self, descriptor: ConnectionDescriptor, *, deadline_s: float = 15.0) -> None:
        self._descriptor = descriptor
        self._deadline_s = deadline_s
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._client: AgentClient | None = None

    def __enter__(self) -> Self:
        self._client = AgentClient(self._descriptor, deadline_s=self._deadline_s)
        self._portal = self._stack.enter_context(start_blocking_portal("trio"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._portal is not None and self._client is not None:
            self._portal.call(self._client.aclose)
        self._stack.close()

    def call(
        self, action: str, args: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> Any:
        """`AgentClient.call`, waiting for its result."""
        if self._portal is None or self._client is None:
            raise RuntimeError("use BlockingClient in a with statement")
        client = self._client

        async def work() -> Any:
            return await client.call(action, args, idempotency_key=idempotency_key)

        return self._portal.call(work)
