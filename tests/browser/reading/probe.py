"""Scripts of the tests' own, run where ours run: in our isolated world, or in the page's."""

from typing import Any

from tabwarden_adapters.browser import page as scripts
from tabwarden_adapters.browser.capture import Binding
from tabwarden_adapters.browser.cdp.generated import runtime
from tabwarden_adapters.browser.reading import call_in_document

from tests.browser.agent import Agent, Call


async def in_world(agent: Agent, body: str, *arguments: object, parts: tuple[str, ...] = ()) -> Any:
    """Call `function (url, ...arguments) { body }` with the document as `this`, and `parts` in scope."""
    names = ", ".join(["url", *(f"a{number}" for number in range(len(arguments)))])
    captured = agent.host.get_context(None)
    binding = Binding(agent.host._captures, captured.token, Call("read"))
    script = scripts._within(f"function ({names}) {{ {body} }}", *parts)
    return await call_in_document(binding, script, captured.url, *arguments)


async def in_page(agent: Agent, expression: str) -> Any:
    """Evaluate in the page's own world, as its scripts would."""
    tab = agent.host._inventory.find(None)
    answer = await tab.session.call(
        runtime.evaluate(expression=expression, return_by_value=True, await_promise=True, user_gesture=True)
    )
    assert answer.exception_details is None, answer.exception_details
    return answer.result.value
