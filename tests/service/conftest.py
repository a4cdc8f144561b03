import pytest

from tests.attacks.serving import HYPERCORN, OWN


@pytest.fixture(params=[OWN, HYPERCORN])
def transport(request):
    """Our own endpoint, and the same pipeline under Hypercorn on trio."""
    return request.param
