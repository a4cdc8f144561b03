"""Node and its packages, for the tests of this folder. Without them they fail: nothing here is skipped."""

import pytest

from tests.interop.node import NodeMissing, find_node, install


@pytest.fixture(scope="session")
def node() -> str:
    """The path of Node, with the packages installed."""
    try:
        found = find_node()
        install()
    except NodeMissing as missing:
        pytest.fail(str(missing), pytrace=False)
    return found
