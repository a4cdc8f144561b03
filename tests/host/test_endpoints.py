"""The seven endpoints, as the reference document has them, through plain HTTP."""

import json
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from tabwarden_adapters.host import (
    OPAQUE,
    Answer,
    ApprovalKind,
    ApprovalRequest,
    HandoffRequest,
    OpenTabRequest,
    SiteMode,
)

from tests.host.support import FakeHost, ask, ask_raw, code_of, request, serving

SITE = "https://shop.test"
LOG = {"type": "page", "origin": SITE, "text": "Hello", "tokens": 2, "at": 1_800_000_000_000}


async def test_host_json_is_as_the_reference_says(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        file = tmp_path / "home" / "host.json"
        said = json.loads(file.read_text())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert said["cdpPort"] == 9222
        assert f"127.0.0.1:{said['controlPort']}" == server.address
        assert (said["token"], len(bytes.fromhex(said["token"]))) == (server.token, 32)
        assert said["pid"] > 1
        assert server.token not in repr(server)


@pytest.mark.parametrize("mode", list(SiteMode))
async def test_policy_gives_the_mode_of_a_site(tmp_path: Path, mode: SiteMode) -> None:
    host = FakeHost()
    host.modes[SITE] = mode
    async with serving(tmp_path, host) as server:
        assert await ask(server, "GET", "/policy?origin=https%3A%2F%2Fshop.test") == (
            200,
            {"mode": mode.value},
        )
        # Not encoded, with a page's path, with a dot, beside a parameter that nobody knows.
        for query in (f"origin={SITE}", f"v=2&origin={SITE}/cart?x=1", f"origin={SITE}.&more"):
            assert await ask(server, "GET", f"/policy?{query}") == (200, {"mode": mode.value})
        assert host.asked == [SITE] * 4


async def test_policy_reads_an_origin_as_a_browser_does(tmp_path: Path) -> None:
    host = FakeHost()
    host.modes["https://good.test"] = SiteMode.ALLOWED
    async with serving(tmp_path, host) as server:

        async def mode(origin: str) -> Any:
            return await ask(server, "GET", f"/policy?origin={origin}")

        assert await mode("HTTPS://GOOD.test:443") == (200, {"mode": "allowed"})
        assert await mode("https:%5C%5Cgood.test%5C@evil.test/") == (200, {"mode": "allowed"})
        for other in ("http://good.test", "https://good.test:8443", "https://evil.good.test"):
            assert await mode(other) == (200, {"mode": "off"})
        asked = len(host.asked)
        for nobodys in ("null", "about:blank", "data:text/html,x", "", "file:///etc/passwd"):
            assert await mode(nobodys) == (200, {"mode": "off"})
        assert len(host.asked) == asked
        for wrong in ("https://me:pw@good.test", "good.test", "https://", "https://a..b", "%ED%A0%80"):
            status, error = await mode(wrong)
            assert (status, error["error"]["code"]) in ((400, "invalid-origin"), (400, "invalid-fields"))
        for query in ("", "?", "?Origin=https://good.test", f"?origin={SITE}&origin={SITE}", "?origin=%ff"):
            assert (await ask(server, "GET", "/policy" + query))[0] == 400


async def test_the_lists_are_the_hosts(tmp_path: Path) -> None:
    host = FakeHost()
    host.overrides, host.excluded = ["bank.test"], ["A1", "B2"]
    async with serving(tmp_path, host) as server:
        assert await ask(server, "GET", "/sensitive-overrides") == (200, {"hosts": ["bank.test"]})
        assert await ask(server, "GET", "/excluded-targets?ignored=1") == (200, {"ids": ["A1", "B2"]})


@pytest.mark.parametrize("kind", list(ApprovalKind))
@pytest.mark.parametrize("answer", list(Answer))
async def test_approve_waits_for_the_person(tmp_path: Path, kind: ApprovalKind, answer: Answer) -> None:
    host = FakeHost()

    async def say(request: ApprovalRequest) -> Answer:
        return answer

    host.approving = say
    async with serving(tmp_path, host) as server:
        body = {"kind": kind.value, "origin": SITE, "summary": "Buy a lamp", "later": {"field": [1]}}
        assert await ask(server, "POST", "/approve", body) == (200, {"answer": answer.value})
        assert host.asked == [ApprovalRequest(kind, SITE, "Buy a lamp")]


async def test_handoff_waits_for_done(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        body = {"reason": "A code was sent to your phone", "origin": SITE}
        assert await ask(server, "POST", "/handoff", body) == (200, {"done": False})

        async def done(request: HandoffRequest) -> bool:
            return True

        host.handing = done
        assert await ask(server, "POST", "/handoff", body) == (200, {"done": True})
        assert host.asked[0] == HandoffRequest("A code was sent to your phone", SITE)


async def test_open_tab_opens_or_says_no(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        assert await ask(server, "POST", "/tabs/open", {"url": SITE}) == (200, {"ok": False})
        host.opens = True
        body = {"url": "https://SHOP.test/a b", "background": True, "agent": "Ada"}
        assert await ask(server, "POST", "/tabs/open", body) == (200, {"ok": True})
        assert host.asked == [
            OpenTabRequest(SITE + "/"),
            OpenTabRequest(SITE + "/a%20b", background=True, agent="Ada"),
        ]
        for url in (
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://me:pw@shop.test",
            "data:,x",
            "x",
            "chrome://settings",
        ):
            assert await ask(server, "POST", "/tabs/open", {"url": url}) == (200, {"ok": False})
        assert len(host.asked) == 2


async def test_words_for_the_person_cannot_steer_a_terminal(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        summary = "ok\x1b[2J\u202etxet\r\n\u2028x\U000e0041"
        await ask(server, "POST", "/approve", {"kind": "risk", "origin": OPAQUE, "summary": summary})
        await ask(server, "POST", "/handoff", {"reason": summary, "origin": ""})
        await ask(server, "POST", "/tabs/open", {"url": SITE, "agent": summary})
        shown = "ok\ufffd[2J\ufffdtxet\ufffd\ufffd\ufffdx\ufffd"
        assert host.asked == [
            ApprovalRequest(ApprovalKind.RISK, OPAQUE, shown),
            HandoffRequest(shown, OPAQUE),
            OpenTabRequest(SITE + "/", agent=shown),
        ]


WRONG_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("/approve", {"kind": "everything"}),
    ("/approve", {"kind": None}),
    ("/approve", {"origin": 1}),
    ("/approve", {"summary": ["x"]}),
    ("/approve", {"summary": "x" * 4001}),
    ("/approve", {"origin": "https://" + "a" * 2048}),
    ("/handoff", {"reason": True}),
    ("/handoff", {"origin": None}),
    ("/log", {"tokens": "2"}),
    ("/log", {"tokens": True}),
    ("/log", {"tokens": -1}),
    ("/log", {"text": None}),
    ("/log", {"at": None}),
    ("/log", {"at": "yesterday"}),
    ("/log", {"at": -5}),
    ("/log", {"meta": "x"}),
    ("/log", {"type": "x" * 201}),
    ("/tabs/open", {"background": "yes"}),
    ("/tabs/open", {"background": 1}),
    ("/tabs/open", {"agent": 7}),
    ("/tabs/open", {"url": ""}),
]
RIGHT: dict[str, dict[str, Any]] = {
    "/approve": {"kind": "site", "origin": SITE, "summary": "x"},
    "/handoff": {"reason": "x", "origin": SITE},
    "/log": LOG,
    "/tabs/open": {"url": SITE},
}


async def test_known_fields_are_strictly_typed(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        for route, changed in WRONG_FIELDS:
            reply = await ask_raw(server, request(server, "POST", route, RIGHT[route] | changed))
            assert code_of(reply) == (400, "invalid-fields"), (route, changed)
        for route, body in RIGHT.items():
            for name in body:
                less = {key: value for key, value in body.items() if key != name}
                reply = await ask_raw(server, request(server, "POST", route, less))
                assert code_of(reply) == (400, "invalid-fields"), (route, name)
        for route, value in (("/approve", []), ("/handoff", "x"), ("/log", None), ("/tabs/open", 1)):
            raw = json.dumps(value).encode()
            reply = await ask_raw(server, request(server, "POST", route, raw_body=raw))
            assert code_of(reply) == (400, "invalid-fields")
        assert host.asked == []
        assert host.entries == []


NOT_JSON = {
    "empty": b"",
    "cut off": b'{"url": "https://shop.test"',
    "two values": b'{"url": "https://shop.test"} {}',
    "duplicate key": b'{"url": "https://shop.test", "url": "https://evil.test"}',
    "NaN": b'{"url": "https://shop.test", "x": NaN}',
    "deep": b'{"url": "https://shop.test", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "byte order mark": b'\xef\xbb\xbf{"url": "https://shop.test"}',
    "lone surrogate": b'{"url": "https://shop.test", "x": "\\ud800"}',
    "not UTF-8": b'{"url": "https://shop.test", "x": "\xff"}',
    "huge number": b'{"url": "https://shop.test", "x": 1e999}',
    "long number": b'{"url": "https://shop.test", "x": ' + b"1" * 100_000 + b"}",
    "form": b"url=https%3A%2F%2Fshop.test",
}


async def test_bodies_are_strict_json(tmp_path: Path) -> None:
    host = FakeHost()
    async with serving(tmp_path, host) as server:
        for what, raw in NOT_JSON.items():
            reply = await ask_raw(server, request(server, "POST", "/tabs/open", raw_body=raw))
            assert code_of(reply) == (400, "invalid-json"), what
        assert host.asked == []


async def test_methods_and_routes_are_the_references(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        for route in ("/policy?origin=x", "/sensitive-overrides", "/excluded-targets"):
            for method in ("POST", "HEAD", "OPTIONS", "PUT", "DELETE"):
                reply = await ask_raw(server, request(server, method, route))
                assert reply.startswith(b"HTTP/1.1 405 ")
        for route in ("/approve", "/handoff", "/log", "/tabs/open"):
            assert code_of(await ask_raw(server, request(server, "GET", route))) == (405, "method")
        for target in ("/", "/Policy", "/policy/", "//policy", "/policy/../log", "/%70olicy", "/static/x",
                       "/tabs", "/policy;x?origin=y", "/tabs/open/1", "/policy#x"):  # fmt: skip
            assert code_of(await ask_raw(server, request(server, "GET", target)))[0] in (400, 404)


async def test_httpx_as_an_engine(tmp_path: Path) -> None:
    host = FakeHost()
    host.modes[SITE] = SiteMode.ASK
    async with serving(tmp_path, host) as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with httpx.AsyncClient(
            base_url=f"http://{server.address}", headers=headers, trust_env=False
        ) as client:
            for _ in range(3):
                assert (await client.get("/policy", params={"origin": SITE})).json() == {"mode": "ask"}
            large = LOG | {"text": "é" * 900_000}
            assert (await client.post("/log", json=large)).json() == {}
            assert host.entries[0].text == large["text"]
            reply = await client.get(
                "/policy", params={"origin": SITE}, headers={"Authorization": "Bearer 00"}
            )
            assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthorized")
            reply = await client.get("/excluded-targets", headers={"Origin": "https://evil.test"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "browser")
            over = await client.post("/log", json=LOG | {"text": "x" * (2 * 1024 * 1024)})
            assert (over.status_code, over.json()["error"]["code"]) == (413, "too-large")


ANSWERS_OF_NO_HOST: list[tuple[str, str, object]] = [
    ("site_mode", "/policy?origin=https://shop.test", "maybe"),
    ("site_mode", "/policy?origin=https://shop.test", True),
    ("site_mode", "/policy?origin=https://shop.test", None),
    ("sensitive_overrides", "/sensitive-overrides", "bank.test"),
    ("sensitive_overrides", "/sensitive-overrides", [1]),
    ("sensitive_overrides", "/sensitive-overrides", None),
    ("excluded_targets", "/excluded-targets", ["\ud800"]),
    ("excluded_targets", "/excluded-targets", ["x" * 300_000]),
    ("excluded_targets", "/excluded-targets", 5),
]


async def test_a_backend_that_answers_otherwise_is_a_typed_failure(tmp_path: Path) -> None:
    for name, target, answer in ANSWERS_OF_NO_HOST:
        host = FakeHost()

        async def wrong(*_: object, answer: object = answer) -> Any:
            return answer

        setattr(host, name, wrong)
        async with serving(tmp_path, host) as server:
            assert code_of(await ask_raw(server, request(server, "GET", target))) == (500, "failure")


async def test_yes_means_yes_and_done_means_true(tmp_path: Path) -> None:
    host = FakeHost()

    async def nearly(request: object) -> Any:
        return 1

    host.approving = host.handing = nearly
    host.opens = "yes"  # type: ignore[assignment]
    async with serving(tmp_path, host) as server:
        for route in ("/approve", "/handoff", "/tabs/open"):
            reply = await ask_raw(server, request(server, "POST", route, RIGHT[route]))
            assert code_of(reply) == (500, "failure")
