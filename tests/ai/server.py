"""A gateway on a socket of its own that does to the wire what a test says."""

import json
import ssl
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Play = Callable[["Peer"], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


def event(text: str | None = None, **members: object) -> bytes:
    """One chunk of an answer, as an event."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": members.pop("finish", None)}
    return b"data: " + json.dumps({"choices": [choice], **members}).encode() + b"\n\n"


def answer(*texts: str) -> bytes:
    """A whole answer, as events."""
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    ending = (
        event("", finish="stop") + b'data: {"choices":[],"usage":' + json.dumps(usage).encode() + b"}\n\n"
    )
    return b"".join(event(text) for text in texts) + ending + b"data: [DONE]\n\n"


class Peer:
    """One connection. `gone` is set once the other side has closed it."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.gone = trio.Event()

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def stream_out(self, pieces: Iterable[bytes]) -> None:
        await self.send(CHUNKED)
        for piece in pieces:
            await self.chunk(piece)
        await self.send(b"0\r\n\r\n")


class Server:
    """`play` answers each request; afterwards the connection stays open until the other side closes it,
    unless `closes`."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.peers: list[Peer] = []
        self.play: Play = self.refuse
        self.closes = False
        self.url = ""
        self.port = 0

    @staticmethod
    async def refuse(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")

    def sends(self, data: bytes) -> None:
        async def play(peer: Peer) -> None:
            await peer.send(data)

        self.play = play

    def streams(self, *pieces: bytes) -> None:
        async def play(peer: Peer) -> None:
            await peer.stream_out(pieces)

        self.play = play

    async def listen(self, nursery: trio.Nursery, tls: ssl.SSLContext | None = None) -> "Server":
        async def handle(stream: trio.abc.Stream) -> None:
            await self._handle(trio.SSLStream(stream, tls, server_side=True) if tls else stream)

        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/v1"
        nursery.start_soon(trio.serve_listeners, handle, [listener])
        return self

    async def _handle(self, stream: trio.abc.Stream) -> None:
        peer = Peer(stream)
        self.peers.append(peer)
        try:
            async with stream:
                self.requests.append(await _request(stream))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch, peer, nursery.cancel_scope)
                    await self.play(peer)
                    if self.closes:
                        nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError, EOFError):
            pass
        peer.gone.set()

    @staticmethod
    async def _watch(peer: Peer, scope: trio.CancelScope) -> None:
        try:
            await peer.stream.receive_some(1)
        finally:
            scope.cancel()

    async def all_gone(self) -> None:
        with trio.fail_after(30):
            for peer in self.peers:
                await peer.gone.wait()


async def _request(stream: trio.abc.Stream) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await _some(stream)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        body += await _some(stream)
    return head + b"\r\n\r\n" + body


async def _some(stream: trio.abc.Stream) -> bytes:
    data = await stream.receive_some(65536)
    if not data:
        raise EOFError
    return bytes(data)


def certificate(folder: Path, address: str = "127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """A server's TLS context with a certificate that signed itself, and the file of that certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file, key_file)
    return context, cert_file
