"""The right edge of a growing Merkle tree (RFC 6962 section 2.1): all that is needed to add leaves and to
know the root.

Leaf number n is the 48-byte `hash` of record n, so a leaf's node is SHA384(0x00 || hash).
"""

import hashlib
from collections.abc import Iterable, Sequence

from tabwarden.errors import MalformedError
from tabwarden.protocol.merkle import leaf_hash, node_hash
from tabwarden.protocol.primitives import sha384


class TreeEdge:
    """`peaks` are the roots of the perfect subtrees that the leaves fall into, the largest (oldest) first."""

    __slots__ = ("peaks", "size")

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        if len(peaks) != size.bit_count():
            raise MalformedError("a tree of this size has another number of peaks")
        self.size = size
        self.peaks = list(peaks)

    def add(self, record_hash: bytes) -> None:
        """Add the next leaf."""
        # `leaf_hash` and `node_hash` spelled out: this is done for each record on the event loop.
        value, below, peaks = hashlib.sha384(b"\x00" + record_hash).digest(), self.size, self.peaks
        while below & 1:
            value = hashlib.sha384(b"\x01" + peaks.pop() + value).digest()
            below >>= 1
        peaks.append(value)
        self.size += 1

    def root(self) -> bytes:
        """48 bytes; of no leaves, the hash of nothing (RFC 6962)."""
        return fold(self.peaks)


def fold(peaks: Sequence[bytes]) -> bytes:
    """The root above `peaks`."""
    if not peaks:
        return sha384(b"")
    value = peaks[-1]
    for peak in peaks[-2::-1]:
        value = node_hash(peak, value)
    return value


def inclusion_path(start: TreeEdge, hashes: Iterable[bytes], index: int) -> tuple[bytes, bytes]:
    """Path (its 48-byte hashes joined, lowest first) and root, for leaf `index` of the tree that `start`
    becomes when the leaves of `hashes` are added. `index` counts from 0 and must be one of those added.

    Keeps only the edge in memory, however long the log is.
    """
    size, path = start.size, b""
    nodes = [(peak, False) for peak in start.peaks]  # a node, and whether the wanted leaf is below it

    def join(left: tuple[bytes, bool], right: tuple[bytes, bool]) -> tuple[bytes, bool]:
        nonlocal path
        if left[1]:
            path += right[0]
        elif right[1]:
            path += left[0]
        return node_hash(left[0], right[0]), left[1] or right[1]

    for record_hash in hashes:
        node, below = (leaf_hash(record_hash), size == index), size
        while below & 1:
            node = join(nodes.pop(), node)
            below >>= 1
        nodes.append(node)
        size += 1
    if not start.size <= index < size:
        raise MalformedError("no such leaf")
    while len(nodes) > 1:
        right = nodes.pop()
        nodes.append(join(nodes.pop(), right))
    return path, nodes[0][0]
