"""Requests on their way to another process: which ones, how many, and that nothing else gets through."""

import json
import sys

import pytest
from tabwarden.errors import MalformedError
from tabwarden.model import Phase, TraceOutcome
from tabwarden_observability import MAX_LISTED, RingTracer, from_plain, setup_tracing
from tabwarden_observability.listing import MAX_LISTED_SPANS, as_plain
from tabwarden_observability.tracing import KEPT_REQUESTS, MAX_CHILDREN


def call(tracer: RingTracer, number: int = 1, *, children: int = 1, nested: bool = False) -> str:
    trace = tracer.start_request()
    trace.annotate(action="read", generation=number, principal_id="agent-1")
    with trace.phase(Phase.DISPATCH):
        open_ = []
        for _ in range(children):
            child = trace.child("cdp.page")
            child.__enter__()
            if nested:
                open_.append(child)
            else:
                child.__exit__(None, None, None)
        for child in reversed(open_):
            child.__exit__(None, None, None)
    trace.end(TraceOutcome.DENIED, "policy-denied")
    return trace.span_id


def numbers(listed) -> list[int]:
    return [request.attributes["tabwarden.principal.generation"] for request in listed.requests]


@pytest.mark.parametrize("nested", [False, True])
async def test_what_comes_out_is_what_was_kept(nested):
    tracing = setup_tracing()
    for number in range(3):
        call(tracing.tracer, number, children=MAX_CHILDREN + 1, nested=nested)
    text = json.dumps(await tracing.listed(10))
    listed = from_plain(json.loads(text))
    assert list(listed.requests) == tracing.recent(10)
    assert not listed.missed


def test_only_the_newest_and_only_what_came_after():
    tracer = RingTracer(keep=4)
    spans = [call(tracer, number) for number in range(6)]
    assert numbers(tracer.listed(2)()) == [4, 5]
    assert tracer.listed(2)().missed
    assert numbers(tracer.listed(9)()) == [2, 3, 4, 5]
    later = tracer.listed(9, spans[3])()
    assert (numbers(later), later.missed) == ([4, 5], False)
    assert tracer.listed(9, spans[5])().requests == ()
    # What it should follow is gone: so may be what came between.
    gone = tracer.listed(9, spans[0])()
    assert (numbers(gone), gone.missed) == ([2, 3, 4, 5], True)
    assert tracer.listed(1, spans[3])().missed


def test_a_list_is_taken_at_once_and_read_later():
    tracer = RingTracer()
    call(tracer, 1)
    read = tracer.listed(9)
    call(tracer, 2)
    assert numbers(read()) == [1]


def test_store_and_answer_are_bounded_in_bytes():
    tracer = RingTracer()
    for number in range(KEPT_REQUESTS + 50):
        call(tracer, number, children=MAX_CHILDREN + 50)
    assert KEPT_REQUESTS == MAX_LISTED
    kept = tracer._recent
    assert len(kept) == KEPT_REQUESTS
    bytes_of_children = sum(sys.getsizeof(child) + 128 for raw in kept for child in raw.children)
    assert bytes_of_children < 16 * 2**20
    listed = tracer.listed(MAX_LISTED)()
    spans = sum(2 + len(request.phases[0].children) for request in listed.requests)
    assert MAX_LISTED_SPANS - 200 < spans <= MAX_LISTED_SPANS
    assert listed.missed
    assert numbers(listed)[-1] == KEPT_REQUESTS + 49
    assert len(json.dumps(as_plain(listed))) < 3 * 2**20


def plain() -> dict:
    tracer = RingTracer()
    call(tracer)
    return as_plain(tracer.listed(1)())


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("trace_id", "A" * 32),
        ("trace_id", "\x1b[2J"),
        ("span_id", "0" * 17),
        ("parent_span_id", "x"),
        ("code", "\x1b[2J"),
        ("outcome", "fine"),
        ("cause", "because"),
        ("duration_ns", -1),
        ("duration_ns", 2**53 + 1),
        ("start_wall_ns", 2**63),
        ("start_wall_ns", "1"),
        ("attributes", []),
        ("phases", {}),
        ("skipped_children", -1),
    ],
)
def test_an_answer_that_no_broker_gives(where, value):
    listed = plain()
    listed["requests"][0][where] = value
    with pytest.raises(MalformedError):
        from_plain(listed)
    listed = plain()
    if where in listed["requests"][0]["phases"][0]:
        listed["requests"][0]["phases"][0]["children"][0][where] = value
        with pytest.raises(MalformedError):
            from_plain(listed)


@pytest.mark.parametrize("value", [None, [], {}, {"requests": [{}], "missed": False}, "\x1b[2J"])
def test_an_answer_of_another_shape(value):
    with pytest.raises(MalformedError):
        from_plain(value)


@pytest.mark.parametrize("depth", [201, 450, 5_000])
def test_an_answer_that_never_ends_below(depth):
    listed = plain()
    span = {**listed["requests"][0]["phases"][0], "children": []}
    for _ in range(depth):
        span = {**span, "children": [span]}
    listed["requests"][0]["phases"] = [span]
    with pytest.raises(MalformedError):
        from_plain(listed)


def test_names_and_attributes_off_the_list_do_not_reach_a_terminal():
    listed = plain()
    [request] = listed["requests"]
    request["attributes"] |= {"url": "CANARY", "tabwarden.action": "CANARY", "tabwarden.scope": 7}
    request["phases"][0]["name"] = "CANARY\x1b[2J"
    request["phases"][0]["children"][0]["name"] = "read CANARY"
    read = from_plain(listed)
    assert "CANARY" not in repr(read)
    assert read.requests[0].action is None
