"""Merkle trees as in RFC 6962 section 2.1, with SHA-384: one signature covers a whole batch of challenges.

Leaves are SHA384(0x00 || leaf), nodes SHA384(0x01 || left || right); an odd leaf is never duplicated.
"""

from collections.abc import Sequence

from tabwarden.errors import MalformedError
from tabwarden.limits import HASH_BYTES
from tabwarden.protocol.primitives import sha384


def leaf_hash(leaf: bytes) -> bytes:
    """48 bytes."""
    return sha384(b"\x00" + leaf)


def node_hash(left: bytes, right: bytes) -> bytes:
    """48 bytes."""
    return sha384(b"\x01" + left + right)


def root_and_paths(leaves: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """The root over leaf hashes (at least one), and each leaf's path: its hashes joined, lowest first."""
    if not leaves:
        raise ValueError("a tree has at least one leaf")
    paths = [b""] * len(leaves)
    # Each entry: (hash, first leaf, one past the last leaf). Pairing level by level, the odd last one
    # moving up unchanged, gives the RFC's tree: its left part is the largest power of two.
    level = [(value, at, at + 1) for at, value in enumerate(leaves)]
    while len(level) > 1:
        above = []
        for at in range(0, len(level) - 1, 2):
            left, start, middle = level[at]
            right, _, end = level[at + 1]
            for leaf in range(start, middle):
                paths[leaf] += right
            for leaf in range(middle, end):
                paths[leaf] += left
            above.append((node_hash(left, right), start, end))
        if len(level) % 2:
            above.append(level[-1])
        level = above
    return level[0][0], paths


def path_length(index: int, count: int) -> int:
    """How many hashes the path of leaf `index` among `count` has."""
    if not 0 <= index < count:
        raise MalformedError("leaf index")
    length, last = 0, count - 1
    while last > 0:
        # The last node of a level has no sibling when its index is even: it moves up unhashed.
        if index % 2 or index < last:
            length += 1
        index //= 2
        last //= 2
    return length


def root_from_path(leaf: bytes, index: int, count: int, path: bytes) -> bytes:
    """The root that a leaf hash and its path lead to (RFC 9162 section 2.1.3.2)."""
    if len(path) != HASH_BYTES * path_length(index, count):
        raise MalformedError("path length")
    value, at, last = leaf, 0, count - 1
    while last > 0:
        if index % 2 or index < last:
            sibling = path[at : at + HASH_BYTES]
            at += HASH_BYTES
            value = node_hash(sibling, value) if index % 2 else node_hash(value, sibling)
        index //= 2
        last //= 2
    return value
