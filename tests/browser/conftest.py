"""A browser and a site for one test. Chromium starts in about half a second."""

import pytest
import trio
from tabwarden_adapters.browser import ChromiumHost, launch_chromium

from tests.browser.agent import Agent
from tests.browser.site import Site


@pytest.fixture
async def site(nursery):
    site = Site()
    listeners = await nursery.start(trio.serve_tcp, site.serve, 0)
    site.port = listeners[0].socket.getsockname()[1]
    return site


@pytest.fixture
async def chromium(nursery):
    async with launch_chromium(nursery) as chromium:
        yield chromium


@pytest.fixture
async def agent(chromium):
    agent = Agent()
    agent.attach(await ChromiumHost.start(chromium, policy_version=lambda: agent.policy))
    return agent
