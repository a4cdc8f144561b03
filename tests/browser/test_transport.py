"""Messages over a pair of real pipes."""

import os

import pytest
import trio
from tabwarden_adapters.browser.cdp import Oversized, PipeTransport, pipe_pair


@pytest.fixture
async def ends():
    """A transport with a small limit, and the descriptors of its other side."""
    their_read, our_write = os.pipe()
    our_read, their_write = os.pipe()
    transport = PipeTransport(our_read, our_write, max_message_bytes=100)
    other = [their_read, their_write]
    yield transport, other
    await transport.aclose()
    for descriptor in other:
        os.close(descriptor)


async def test_messages_are_cut_at_nul_wherever_the_chunks_end(ends):
    transport, (_, write) = ends
    os.write(write, b'{"a":1}\0{"b"')
    assert await transport.receive() == b'{"a":1}'
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, os.write, write, b":2}\0\0{}\0")
        assert await transport.receive() == b'{"b":2}'
    assert [await transport.receive(), await transport.receive()] == [b"", b"{}"]


async def test_an_oversized_message_leaves_its_head_and_the_next_one_whole(ends):
    transport, (_, write) = ends
    os.write(write, b'{"id":7,' + b"x" * 500)
    os.write(write, b"y" * 500 + b'\0{"id":8}\0')
    message = await transport.receive()
    assert isinstance(message, Oversized)
    assert message.startswith(b'{"id":7,')
    assert len(message) <= 100
    assert message.tail == b"y" * 64
    assert await transport.receive() == b'{"id":8}'
    os.write(write, b"z" * 150 + b"\0" + b"w" * 100 + b"\0")
    assert isinstance(await transport.receive(), Oversized)
    assert await transport.receive() == b"w" * 100


async def test_a_closed_pipe_ends_the_messages(ends):
    transport, other = ends
    os.close(other.pop())
    assert await transport.receive() is None


async def test_what_is_sent_ends_in_nul(ends):
    transport, (read, _) = ends
    await transport.send(b"{}")
    assert os.read(read, 100) == b"{}\0"


async def test_descriptors_for_the_child_are_above_those_it_uses():
    transport, child_read, child_write = pipe_pair()
    assert child_read > 4
    assert child_write > 4
    assert not os.get_inheritable(child_read)
    os.close(child_read)
    os.close(child_write)
    await transport.aclose()
