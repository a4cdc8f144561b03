"""The client of both bearer-token peers: one POST a call on a kept connection."""

from tests.bench.http_client import HttpConnection, open_tcp
from tests.bench.stacks import Client, Ready

_BODY = b'{"type":"agent-request","action":"sessions","args":{}}'


class BearerClient:
    """One caller."""

    def __init__(self, connection: HttpConnection, token: str) -> None:
        self._connection = connection
        self._headers = f"authorization: Bearer {token}\r\ncontent-type: application/json\r\n"

    async def call(self) -> None:
        """Make one no-op call."""
        status, _ = await self._connection.post("/v1/agent", self._headers, _BODY)
        if status != 200:
            raise RuntimeError(f"refused: {status}")

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.aclose()


async def connect(ready: Ready, index: int) -> Client:
    """One caller with its own connection."""
    return BearerClient(HttpConnection(await open_tcp(ready["address"])), ready["token"])
