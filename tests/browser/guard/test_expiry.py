"""A grant that merely expires: nobody revokes it, and all the same nothing of it is left in the browser."""

import pytest
import trio
from tabwarden import Caller
from tabwarden.errors import DescriptorError, Refused

from tests.browser.guard.brokered import brokered
from tests.support.fakes import ManualClock


async def test_its_context_is_closed(nursery, site):
    site.pages["/"] = "here"
    clock = ManualClock()
    async with brokered(nursery, "isolated", "one", "two", clock=clock) as broker:
        host = f"127.0.0.1:{site.port}"
        async with (
            broker.agent("one", host, expires_at_ms=clock.wall + 60_000) as one,
            broker.agent("two", host) as two,
        ):
            for agent in (one, two):
                await agent.does("navigate", url=site.url())
            grant = await broker.browser.guard.context(Caller("one", 1))
            (tab,) = grant.view.own()
            clock.advance(60_000)
            await tab.session.wait_ended()  # by itself
            assert grant.ended
            with pytest.raises(OSError, match="connect"):
                await trio.open_tcp_stream("127.0.0.1", grant.proxy.port)
            with pytest.raises((Refused, DescriptorError)):
                await one.call("read")
            assert (await two.call("read"))["text"] == "here"


async def test_in_the_persons_tabs_what_it_acted_in_loads_nothing_more(nursery, site):
    site.pages["/"] = "here"
    clock = ManualClock()
    async with brokered(nursery, "shared", "one", clock=clock) as broker:
        async with broker.agent("one", f"127.0.0.1:{site.port}", expires_at_ms=clock.wall + 60_000) as one:
            await one.does("navigate", url=site.url())
        (tab,) = broker.browser.actions["read"].func.__self__._base.tabs()
        clock.advance(60_000)
        await broker.control.end_expired()
        bound = broker.browser.guard._bound[tab.target_id]
        assert bound.rules.resource(site.url("/x")) is False
