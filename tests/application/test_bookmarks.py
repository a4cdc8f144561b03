"""`bookmarks:list` and `bookmarks:mutate`: compare-and-set, destinations, inspection, bounds."""

from typing import Any

import pytest
from tabwarden.errors import ActionError, Code
from tabwarden_adapters.application import ApplicationPolicy, Bookshelf

from tests.application.support import (
    COMPANY,
    Application,
    bookmark,
    opened,
    visible,
)


def mutation(action: str = "add", **changes: Any) -> dict[str, Any]:
    """Arguments of a change that works on an empty shelf."""
    arguments = {"action": action, "expectedRevision": 0, "policyVersion": 1}
    if action != "remove":
        arguments["bookmark"] = {"title": "A", "url": "https://a.test/", "folder": "F"}
    return {**arguments, **changes}


def with_one(**changes: Any) -> Application:
    application = opened()
    application.store.shelf = Bookshelf(4, (bookmark(1, **changes),))
    return application


async def test_a_life_of_a_bookmark():
    application = opened()
    assert await application.call("bookmarks:mutate", **mutation()) == {"completed": True}
    assert application.last.effects == ["begin", "done"]
    listed = await application.call("bookmarks:list")
    (mine,) = listed["personal"]
    assert mine == {"id": mine["id"], "title": "A", "url": "https://a.test/", "folder": "F"}
    assert [one["managed"] for one in listed["managed"]] == [True]
    assert (listed["revision"], listed["policyVersion"], listed["canMutate"]) == (1, 1, True)
    other = {"title": "B", "url": "HTTPS://B.test:443/%7Eb", "folder": ""}
    await application.call(
        "bookmarks:mutate", **mutation("update", expectedRevision=1, id=mine["id"], bookmark=other)
    )
    (mine,) = (await application.call("bookmarks:list"))["personal"]
    assert (mine["title"], mine["url"]) == ("B", "https://b.test/%7Eb")
    await application.call("bookmarks:mutate", **mutation("remove", expectedRevision=2, id=mine["id"]))
    assert application.store.shelf == Bookshelf(3, ())


@pytest.mark.parametrize("changes", [{"expectedRevision": 1}, {"policyVersion": 2}])
async def test_what_is_not_current_is_a_conflict(changes):
    application = opened()
    assert await application.fails("bookmarks:mutate", **mutation(**changes)) == (Code.CONFLICT, False)
    assert application.inspector.seen == []


@pytest.mark.parametrize("action", ["update", "remove"])
async def test_an_id_that_is_not_there_is_a_conflict(action):
    application = opened()
    assert await application.fails("bookmarks:mutate", **mutation(action, id="x")) == (Code.CONFLICT, False)


@pytest.mark.parametrize("action", ["update", "remove"])
async def test_company_bookmarks_are_protected(action):
    application = opened()
    refused = await application.fails("bookmarks:mutate", **mutation(action, id=COMPANY.id))
    assert (refused, application.rule) == ((Code.TARGET_DENIED, False), "bookmarks.managed")


async def test_hidden_and_locked():
    application = opened()
    application.policy = visible(locked=frozenset({"bookmarks"}))
    assert (await application.call("bookmarks:list"))["canMutate"] is False
    assert await application.fails("bookmarks:mutate", **mutation()) == (Code.POLICY_DENIED, False)
    assert application.rule == "bookmarks.locked"
    for policy in (visible(hidden=frozenset({"bookmarks"})), ApplicationPolicy(version=1)):
        application.policy = policy
        assert await application.fails("bookmarks:list") == (Code.POLICY_DENIED, False)
        assert await application.fails("bookmarks:mutate", **mutation()) == (Code.POLICY_DENIED, False)
        assert application.rule == "bookmarks.hidden"


# ---- destinations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["wiki.test", "a.test"])
async def test_a_list_with_one_foreign_destination_is_refused_whole(missing):
    application = with_one()
    application.hosts.remove(missing)
    assert await application.fails("bookmarks:list") == (Code.DESTINATION_DENIED, False)
    assert application.judged == [COMPANY.url, "https://a.test/1"]  # all were asked about
    assert application.inspector.seen == []


@pytest.mark.parametrize("missing", ["a.test", "b.test"])
async def test_an_update_needs_a_right_to_the_old_and_the_new_destination(missing):
    application = with_one()
    application.hosts.remove(missing)
    new = {"title": "B", "url": "https://b.test/"}
    arguments = mutation("update", expectedRevision=4, id="id-1", bookmark=new)
    assert await application.fails("bookmarks:mutate", **arguments) == (Code.DESTINATION_DENIED, False)
    assert application.inspector.seen == []


async def test_removing_needs_a_right_to_the_destination():
    application = with_one()
    application.hosts.remove("a.test")
    arguments = mutation("remove", expectedRevision=4, id="id-1")
    assert await application.fails("bookmarks:mutate", **arguments) == (Code.DESTINATION_DENIED, False)


@pytest.mark.parametrize("verdict", [1, "yes", None, RuntimeError("text")])
async def test_only_true_allows(verdict):
    application = opened()
    application.verdict = verdict
    assert await application.fails("bookmarks:mutate", **mutation()) == (Code.DESTINATION_DENIED, False)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://a.test/",
            "javascript:alert(1)",
            "https://user:secret@a.test/",
            "https://user@a.test/",
            "a.test",
        ),
        *("https://", "data:text/html,x", "file:///etc/passwd", "https://a..test/", "https://a.test../"),
        "https://a.test/" + "\u00e9" * 2000,
    ],
)
async def test_addresses_that_no_bookmark_may_have(url):
    application = opened()
    draft = {"title": "A", "url": url}
    assert await application.fails("bookmarks:mutate", **mutation(bookmark=draft)) == (
        Code.INVALID_ARGUMENTS,
        False,
    )


@pytest.mark.parametrize("url", ["https://b.test\\@a.test/", "https://a.test.:443/", "HTTP://A.TEST"])
async def test_addresses_are_judged_as_browsers_read_them(url):
    application = opened()
    await application.add("A", url)
    assert application.judged[0] in ("https://b.test/@a.test/", "https://a.test/", "http://a.test/")
    assert application.store.shelf.bookmarks[0].url == application.judged[0]


# ---- texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\nb", "a\u2028b", "\x00", "\u202egnp.exe", "\x7f", "\u2066x"])
@pytest.mark.parametrize("field", ["title", "folder"])
async def test_texts_that_would_not_show_as_they_are(field, text):
    application = opened()
    draft = {"title": "A", "url": "https://a.test/", field: text}
    assert await application.fails("bookmarks:mutate", **mutation(bookmark=draft)) == (
        Code.INVALID_ARGUMENTS,
        False,
    )


@pytest.mark.parametrize("field", ["title", "url", "folder"])
async def test_a_finding_keeps_it_out_and_in(field):
    application = opened()
    secret = "https://a.test/sekret" if field == "url" else "sekret"
    draft = {"title": "A", "url": "https://a.test/", "folder": "F", field: secret}
    application.inspector.forbidden = ("sekret",)
    assert await application.fails("bookmarks:mutate", **mutation(bookmark=draft)) == (
        Code.CONTENT_DENIED,
        False,
    )
    application.store.shelf = Bookshelf(1, (bookmark(1, **{field: secret}),))
    assert await application.fails("bookmarks:list") == (Code.CONTENT_DENIED, False)
    assert [direction for direction, _ in application.inspector.seen] == ["from-page", "from-page"]


async def test_a_secret_in_percent_signs_is_seen():
    application = opened()
    application.inspector.forbidden = ("sekret",)
    draft = {"title": "A", "url": "https://a.test/?k=%73ekret"}
    assert await application.fails("bookmarks:mutate", **mutation(bookmark=draft)) == (
        Code.CONTENT_DENIED,
        False,
    )


@pytest.mark.parametrize("answer", [RuntimeError("sekret"), "class-of-finding", b"x", True])
@pytest.mark.parametrize("action", ["list", "mutate"])
async def test_an_inspector_that_says_anything_but_nothing_withholds(action, answer):
    application = with_one()
    application.inspector.instead = answer
    arguments = {} if action == "list" else mutation(expectedRevision=4)
    assert await application.fails(f"bookmarks:{action}", **arguments) == (Code.CONTENT_DENIED, False)
    assert application.store.shelf.revision == 4


# ---- what happens meanwhile -----------------------------------------------------------------------------


def policy_changes(application: Application) -> None:
    application.policy = visible(2, managed=(COMPANY,))


def right_is_lost(application: Application) -> None:
    application.hosts.clear()


def call_ends(application: Application) -> None:
    application.last.ended = Code.REVOKED


def somebody_changes(application: Application) -> None:
    application.store.shelf = Bookshelf(9, ())


def lock_without_a_new_version(application: Application) -> None:
    application.policy = visible(managed=(COMPANY,), locked=frozenset({"bookmarks"}))


HAPPENINGS = [
    (lock_without_a_new_version, Code.STALE),
    (policy_changes, Code.STALE),
    (right_is_lost, Code.DESTINATION_DENIED),
    (call_ends, Code.REVOKED),
]


@pytest.mark.parametrize(("happening", "code"), [*HAPPENINGS, (somebody_changes, Code.CONFLICT)])
@pytest.mark.parametrize("point", ["inspector", "store"])
async def test_before_the_change_anything_prevents_it(point, happening, code):
    application = opened()
    getattr(application, point).meanwhile = lambda: happening(application)
    assert await application.fails("bookmarks:mutate", **mutation()) == (code, False)
    assert application.store.shelf.bookmarks == ()


@pytest.mark.parametrize(("happening", "code"), HAPPENINGS)
async def test_a_list_is_withheld_when_it_is_no_longer_anybodys_right(happening, code):
    application = with_one()
    application.inspector.meanwhile = lambda: happening(application)
    assert await application.fails("bookmarks:list") == (code, False)


async def test_a_failure_of_the_store_is_told_as_it_was():
    application = opened()
    application.store.instead = ActionError(Code.FAILURE, committed=None)
    assert await application.fails("bookmarks:mutate", **mutation()) == (Code.FAILURE, None)


# ---- bounds ---------------------------------------------------------------------------------------------


async def test_a_shelf_never_grows_past_what_can_be_listed():
    application = opened()
    long = "https://a.test/" + "x" * 8000
    for _ in range(11):
        await application.add("A" * 256, long, "F" * 256)
    with pytest.raises(ActionError) as caught:
        await application.add("A" * 256, long, "F" * 256)
    assert (caught.value.code, caught.value.committed) == (Code.RESULT_TOO_LARGE, False)
    assert len((await application.call("bookmarks:list"))["personal"]) == 11


async def test_a_hosts_store_with_more_than_a_reply_holds():
    application = opened()
    application.store.shelf = Bookshelf(1, tuple(bookmark(number) for number in range(2000)))
    assert await application.fails("bookmarks:list") == (Code.RESULT_TOO_LARGE, False)
    assert application.inspector.seen == []


async def test_full_shelf_and_full_company_list_together_fit():
    from tabwarden_adapters.application.values import MANAGED_BYTES, PERSONAL_BYTES

    application = opened()
    application.inspector.forbidden = ()
    url = "https://a.test/" + "x" * 1500
    personal = tuple(bookmark(number, url=url) for number in range(1000))
    size = personal[999].size_in_list()
    managed = tuple(bookmark(number, url=url) for number in range(1000, 1000 + MANAGED_BYTES // (size + 20)))
    application.policy = visible(managed=managed)
    application.store.shelf = Bookshelf(2**53, personal[: PERSONAL_BYTES // size])
    listed = await application.call("bookmarks:list")
    assert len(listed["personal"]) > 50
    assert len(listed["managed"]) > 10
