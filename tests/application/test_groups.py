"""`tabs:group`: judged for every tab that the move concerns."""

import pytest
from tabwarden.errors import Code

from tests.application.support import SESSION, Application, MemoryGroups, opened, visible

ARGUMENTS = {"sessionId": SESSION, "group": "Work"}


def grouping(*addresses: str) -> tuple[Application, MemoryGroups]:
    groups = MemoryGroups(*addresses)
    return opened(groups=groups), groups


async def test_a_tab_goes_into_a_group():
    application, groups = grouping("https://a.test/", "", "about:blank", "https://B.test")
    assert await application.call("tabs:group", **ARGUMENTS) == {"completed": True, "sessionId": SESSION}
    assert groups.put_into == [(SESSION, "Work")]
    assert application.last.effects == ["begin", "done"]
    assert set(application.judged) == {"https://a.test/", "https://b.test/"}


@pytest.mark.parametrize("foreign", ["https://c.test/", "chrome://settings/", "file:///etc/passwd"])
async def test_a_group_with_one_foreign_tab_is_refused_whole(foreign):
    application, groups = grouping("https://a.test/", foreign)
    assert await application.fails("tabs:group", **ARGUMENTS) == (Code.DESTINATION_DENIED, False)
    assert groups.put_into == []


async def test_a_tab_that_joins_meanwhile_counts():
    application, groups = grouping("https://a.test/")
    groups.meanwhile = lambda: groups.all.append("https://c.test/")
    assert await application.fails("tabs:group", **ARGUMENTS) == (Code.DESTINATION_DENIED, False)
    assert groups.put_into == []


async def test_a_policy_that_changes_meanwhile_prevents_it():
    application, groups = grouping("https://a.test/")

    def changes() -> None:
        application.policy = visible(2)

    groups.meanwhile = changes
    assert await application.fails("tabs:group", **ARGUMENTS) == (Code.STALE, False)
    assert groups.put_into == []


async def test_a_name_that_would_not_show_as_it_is():
    application, _ = grouping("https://a.test/")
    refused = await application.fails("tabs:group", sessionId=SESSION, group="a\u202eb")
    assert refused == (Code.INVALID_ARGUMENTS, False)


def test_a_host_without_groups_or_stores_has_no_such_action():
    from tabwarden_adapters.application import create_application_controls

    nothing = create_application_controls(
        policy=lambda caller: visible(), destination_allowed=lambda caller, href: False, inspect=None
    )
    assert nothing == {}
    assert "tabs:group" not in opened().controls
