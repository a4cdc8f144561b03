"""The tree against RFC 6962's own recursive definition, and every change to a proof against the root."""

import hashlib
from functools import cache

import pytest
from tabwarden.errors import MalformedError
from tabwarden.protocol.merkle import leaf_hash, node_hash, path_length, root_and_paths, root_from_path

SIZES = [*range(1, 71), 128, 255, 256]


def sha(data: bytes) -> bytes:
    return hashlib.sha384(data).digest()


@cache
def leaf(at: int) -> bytes:
    return sha(b"\x00" + b"leaf %d" % at)


def split(start: int, end: int) -> int:
    """RFC 6962 section 2.1: k is the largest power of two smaller than n."""
    k = 1
    while k * 2 < end - start:
        k *= 2
    return start + k


@cache
def head(start: int, end: int) -> bytes:
    """MTH of the leaves from `start` up to `end`."""
    if end - start == 1:
        return leaf(start)
    middle = split(start, end)
    return sha(b"\x01" + head(start, middle) + head(middle, end))


def path(at: int, start: int, end: int) -> list[bytes]:
    """PATH (RFC 6962 section 2.1.1), lowest hash first."""
    if end - start == 1:
        return []
    middle = split(start, end)
    if at < middle:
        return [*path(at, start, middle), head(middle, end)]
    return [*path(at, middle, end), head(start, middle)]


def refused_or_other(value: bytes, at: int, count: int, data: bytes, root: bytes) -> bool:
    try:
        return root_from_path(value, at, count, data) != root
    except MalformedError:
        return True


def test_hashes_are_domain_separated() -> None:
    assert leaf_hash(b"x") == sha(b"\x00x")
    assert node_hash(b"l" * 48, b"r" * 48) == sha(b"\x01" + b"l" * 48 + b"r" * 48)


@pytest.mark.parametrize("count", SIZES)
def test_root_and_every_path(count: int) -> None:
    root, paths = root_and_paths([leaf(at) for at in range(count)])
    assert root == head(0, count)
    for at in range(count):
        expected = path(at, 0, count)
        assert paths[at] == b"".join(expected)
        assert path_length(at, count) == len(expected)
        assert root_from_path(leaf(at), at, count, paths[at]) == root


def test_an_odd_leaf_is_not_doubled() -> None:
    """Doubling gives two different batches one root (CVE-2012-2459)."""
    assert head(0, 3) == root_and_paths([leaf(0), leaf(1), leaf(2)])[0]
    assert root_and_paths([leaf(0), leaf(1), leaf(2), leaf(2)])[0] != head(0, 3)


@pytest.mark.parametrize(
    ("at", "count"), [(0, 1), (1, 2), (2, 3), (4, 5), (5, 7), (0, 7), (63, 64), (200, 256)]
)
def test_every_bit_of_leaf_and_path(at: int, count: int) -> None:
    root, paths = root_and_paths([leaf(i) for i in range(count)])
    data = leaf(at) + paths[at]
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert root_from_path(bytes(changed[:48]), at, count, bytes(changed[48:])) != root


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 13, 31, 64, 70])
def test_no_other_index_leads_to_the_root(count: int) -> None:
    root, paths = root_and_paths([leaf(i) for i in range(count)])
    for at in range(count):
        for other in {*range(count + 3), *(at ^ 1 << bit for bit in range(16))} - {at}:
            assert refused_or_other(leaf(at), other, count, paths[at], root)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 7, 13, 31, 64, 70])
def test_another_count_is_refused_or_goes_into_the_signature(count: int) -> None:
    """A path of the same shape exists in some trees of another size, so the root alone cannot tell: the
    signed value holds the count (see test_challenge). No tree that is too small accepts the index, and
    none accepts a path of another length."""
    root, paths = root_and_paths([leaf(i) for i in range(count)])
    for at in range(count):
        for other in {*range(80), *(count ^ 1 << bit for bit in range(9))} - {count}:
            same_shape = other > at and path_length(at, other) == path_length(at, count)
            if same_shape:
                root_from_path(leaf(at), at, other, paths[at])
            else:
                with pytest.raises(MalformedError):
                    root_from_path(leaf(at), at, other, paths[at])
    assert root


def test_paths_cannot_be_exchanged() -> None:
    root, paths = root_and_paths([leaf(i) for i in range(8)])
    for at in range(8):
        for other in set(range(8)) - {at}:
            assert root_from_path(leaf(at), at, 8, paths[other]) != root
            assert root_from_path(leaf(at), other, 8, paths[at]) != root
            assert root_from_path(leaf(at), other, 8, paths[other]) != root


@pytest.mark.parametrize("change", [-48, -1, 1, 48])
def test_a_path_has_one_length(change: int) -> None:
    for count in range(1, 20):
        _, paths = root_and_paths([leaf(i) for i in range(count)])
        for at in range(count):
            wrong = paths[at][:change] if change < 0 else paths[at] + bytes(change)
            if wrong == paths[at]:
                continue
            with pytest.raises(MalformedError, match="path length"):
                root_from_path(leaf(at), at, count, wrong)


@pytest.mark.parametrize(("at", "count"), [(0, 0), (1, 1), (2, 1), (7, 7), (-1, 3), (65535, 256)])
def test_an_index_lies_within_the_tree(at: int, count: int) -> None:
    with pytest.raises(MalformedError, match="leaf index"):
        path_length(at, count)
    with pytest.raises(MalformedError, match="leaf index"):
        root_from_path(leaf(0), at, count, b"")


def test_a_tree_has_a_leaf() -> None:
    with pytest.raises(ValueError, match="at least one leaf"):
        root_and_paths([])
