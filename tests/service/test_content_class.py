"""What a caller is told of a text that must not pass: its class out of a closed set, and nothing else."""

import pytest
from tabwarden import ActionError, AgentClient, CallFailed, Code, ContentClass

from tests.attacks.serving import OWN, serve


async def ending(error: ActionError) -> CallFailed:
    async def act(arguments: object, context: object) -> None:
        raise error

    async with serve(OWN, actions={"sessions": act}) as broker, AgentClient(broker.descriptor) as client:
        with pytest.raises(CallFailed) as caught:
            await client.call("sessions")
    return caught.value


@pytest.mark.parametrize("found", ContentClass)
async def test_the_class_is_told(found):
    failed = await ending(ActionError(Code.CONTENT_DENIED, rule="dlp.of-mine", content_class=found))
    assert (failed.status, failed.code, failed.content_class) == (403, "content-denied", found.value)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (Code.CONTENT_DENIED, None),
        (Code.CONTENT_DENIED, "card 4111 1111 1111 1111"),
        (Code.CONTENT_DENIED, ["credential"]),
        (Code.POLICY_DENIED, ContentClass.CARD),
    ],
)
async def test_nothing_else_is(found, code):
    failed = await ending(ActionError(code, content_class=found))
    assert (failed.code, failed.content_class) == (code.value, None)
