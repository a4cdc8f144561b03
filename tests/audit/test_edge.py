"""The tree's edge against the whole tree, which `tabwarden.protocol.merkle` builds."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabwarden.errors import MalformedError
from tabwarden.protocol.merkle import leaf_hash, root_and_paths, root_from_path
from tabwarden_adapters.audit.edge import TreeEdge, inclusion_path

HASHES = [hashlib.sha384(bytes([number])).digest() for number in range(130)]


def edge_of(count: int) -> TreeEdge:
    edge = TreeEdge()
    for value in HASHES[:count]:
        edge.add(value)
    return edge


def test_of_nothing() -> None:
    assert TreeEdge().root() == hashlib.sha384(b"").digest()


@pytest.mark.parametrize("count", [*range(1, 18), 31, 32, 33, 63, 64, 65, 127, 128, 129])
def test_the_root_is_that_of_the_whole_tree(count: int) -> None:
    edge = edge_of(count)
    assert edge.root() == root_and_paths([leaf_hash(value) for value in HASHES[:count]])[0]
    assert len(edge.peaks) == count.bit_count()


@settings(max_examples=50, deadline=None)
@given(count=st.integers(1, 130), data=st.data())
def test_paths_are_those_of_the_whole_tree_wherever_it_begins(count: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, count - 1))
    dropped = data.draw(st.integers(0, index))
    root, paths = root_and_paths([leaf_hash(value) for value in HASHES[:count]])
    found = inclusion_path(edge_of(dropped), HASHES[dropped:count], index)
    assert found == (paths[index], root)
    assert root_from_path(leaf_hash(HASHES[index]), index, count, found[0]) == root


def test_a_leaf_that_is_not_among_those_added() -> None:
    for index in (3, 10):
        with pytest.raises(MalformedError):
            inclusion_path(edge_of(4), HASHES[4:10], index)


def test_peaks_of_another_size() -> None:
    with pytest.raises(MalformedError):
        TreeEdge(3, HASHES[:1])
