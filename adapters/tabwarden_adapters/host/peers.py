"""Whose a connection is, and whether its other end still exists, where Linux tells (sock_diag(7))."""

import os
import socket

from tabwarden.service.peer_socket import PeerLookup, PeerSocket


class Peers:
    """Look-ups for the connections of one listener. Close it after use."""

    def __init__(self) -> None:
        self._lookup = PeerLookup()

    def close(self) -> None:
        self._lookup.close()

    def foreign(self, ours: socket.socket) -> bool:
        """Whether another user's process has the other end. False where the system does not tell."""
        if not self._lookup.available:
            return False
        peer = self._find(ours)
        return peer is None or peer.uid != os.geteuid()

    def gone(self, ours: socket.socket) -> bool:
        """Whether a peer that sent its end of stream has closed rather than half-closed.

        Where the system does not tell it counts as gone: nobody is asked for a peer that does not listen.
        """
        peer = self._find(ours)
        return peer is None or not peer.open

    def _find(self, ours: socket.socket) -> PeerSocket | None:
        try:
            return self._lookup.find(ours.getpeername(), ours.getsockname())
        except OSError:
            return None
