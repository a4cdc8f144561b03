"""What Linux knows of the other end of a loopback connection: whose it is, and whether it still exists.

Both ends are on one machine, so the kernel's socket table (NETLINK_SOCK_DIAG, sock_diag(7), the
source of `/proc/net/tcp`) has the peer's own socket in it. One look-up by address pair takes some
microseconds however many sockets there are, which reading `/proc/net/tcp` does not.
"""

import os
import socket
import struct
import sys
from dataclasses import dataclass

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_ENOENT = 2
_NO_COOKIE = b"\xff" * 8
_HEADER = struct.Struct("=IHHII")
_SOCKET_ID = struct.Struct("!HH16s16s")
# family, protocol, extensions, padding, states; then the socket id, interface and cookie
_REQUEST = struct.Struct("=BBBxI")
# family, state, timer, retransmits; socket id; expires, rqueue, wqueue, uid, inode
_REPLY_TAIL = struct.Struct("=IIIII")


@dataclass(frozen=True, slots=True)
class PeerSocket:
    """`uid` owns it; `open` is False when no process holds it any more (it was closed, not half-closed)."""

    uid: int
    open: bool


class PeerLookup:
    """Looks up peers of IPv4 loopback connections. `available` is False where the system does not tell."""

    def __init__(self) -> None:
        self._netlink: socket.socket | None = None
        if sys.platform == "linux":
            try:
                self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
            except OSError:
                self._netlink = None

    @property
    def available(self) -> bool:
        return self._netlink is not None

    def close(self) -> None:
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None

    def find(self, peer: tuple[str, int], ours: tuple[str, int]) -> PeerSocket | None:
        """The socket whose own address is `peer` and whose peer is `ours`; None when there is none."""
        if self._netlink is None:
            return None
        identity = _SOCKET_ID.pack(peer[1], ours[1], _address(peer[0]), _address(ours[0]))
        body = (
            _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
            + identity
            + bytes(4)
            + _NO_COOKIE
        )
        header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
        try:
            self._netlink.sendto(header + body, (0, 0))
            reply = self._netlink.recv(4096)
        except OSError:
            return None
        _, kind, _, _, _ = _HEADER.unpack_from(reply)
        if kind != _SOCK_DIAG_BY_FAMILY:
            return None
        _, _, _, uid, inode = _REPLY_TAIL.unpack_from(reply, _HEADER.size + 4 + _SOCKET_ID.size + 12)
        return PeerSocket(uid=uid, open=inode != 0)


def listener_is_ours(host: str, port: int) -> bool:
    """Whether this user's process listens at an IPv4 loopback address, as far as the system tells."""
    peers = PeerLookup()
    try:
        if not peers.available:
            return True
        # A connection that does not exist leads the kernel's look-up on to the listening socket.
        listener = peers.find((host, port), (host, 0))
        return listener is not None and listener.uid == os.geteuid()
    finally:
        peers.close()


def _address(host: str) -> bytes:
    return socket.inet_aton(host) + bytes(12)
