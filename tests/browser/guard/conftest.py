"""A site that keeps what it is sent, for the tests of bodies."""

import pytest
import trio

from tests.browser.guard.sending import Receiver


@pytest.fixture
async def receiver(nursery):
    receiver = Receiver()
    listeners = await nursery.start(trio.serve_tcp, receiver.serve, 0)
    receiver.port = listeners[0].socket.getsockname()[1]
    return receiver
