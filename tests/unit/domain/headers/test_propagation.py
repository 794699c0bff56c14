"""What crosses a hop, and what never does, over every header that there is and every way to carry it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.headers import headers, propagation
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX
from interlock.domain.headers.propagation import A2A_EXTENSION, CROSSING, MCP_PREFIX, NEVER, Direction, Trace

DOWN, UP = Direction.DOWNSTREAM, Direction.UPSTREAM
SESSION = "crp_sess_" + "0a" * 16
HMAC = "sha256:" + "0f" * 32
TRACE = Trace("00-" + "0a" * 16 + "-" + "0b" * 8 + "-01", "a=1,b=2", "user=7")

DOWNSTREAM = propagation.delegated(
    parent=SESSION, grant="g.m", loop_depth=1, budget=Micros(280_000), policy="halt-on HIGH; require-grounding 0.80",
    mode="strict", residency="EU",
)  # fmt: skip
UPSTREAM = (
    ("CRP-Agent-Safety-Budget", "0.28"),
    ("CRP-Safety-Hallucination-Risk", "HIGH"),
    ("CRP-Provenance-HMAC", HMAC),
    ("CRP-Provenance-Chain-Integrity", "VALID"),
    ("CRP-Compliance-Audit-Trail-URI", "https://interlock.example/crp/v3/trails/crp_trail_" + "0c" * 16),
    ("CRP-Quality-Score", "0.910"),
    ("CRP-Context-Session-Id", SESSION),
)
SETS = {DOWN: DOWNSTREAM, UP: UPSTREAM}

CARRIERS = {
    "http": (propagation.to_http, propagation.from_http),
    "grpc": (propagation.to_grpc, propagation.from_grpc),
    "mcp": (propagation.to_mcp, propagation.from_mcp),
    "a2a": (propagation.to_a2a, propagation.from_a2a),
}
carriers = pytest.mark.parametrize("carrier", CARRIERS)
directions = pytest.mark.parametrize("direction", list(Direction), ids=lambda one: one.value)

# A value of the right form for each header, where a form is demanded on the way.
EXAMPLES = {name.lower(): value for name, value in (*DOWNSTREAM, *UPSTREAM)}


def bare(carrier: str, name: str, value: object) -> object:
    """A carrier that somebody else filled, with one header of any name."""
    if carrier == "mcp":
        return {MCP_PREFIX + name.removeprefix("crp-"): value}
    return {A2A_EXTENSION: {name: value}} if carrier == "a2a" else [(name, value)]


@pytest.mark.req("HDR-1", "HDR-2")
@carriers
@directions
def test_what_must_cross_arrives_as_it_was_sent(carrier, direction):
    """The lists of SPEC-012 §3.1 and §3.2 go over every carrier unchanged, with the trace beside them."""
    inject, extract = CARRIERS[carrier]
    crossed = extract(inject(SETS[direction], direction, TRACE), direction)

    assert dict(crossed.fields) == dict(SETS[direction])
    assert crossed.trace == TRACE
    assert crossed.dropped == ()


@pytest.mark.req("HDR-3")
@carriers
@directions
@pytest.mark.parametrize("name", sorted(headers.KNOWN))
def test_every_other_header_stays_behind_in_both_directions(carrier, direction, name):
    """Of all headers that there are, only those of the list are injected or extracted (SPEC-012 §3.3)."""
    crosses = name in {known.lower() for known in CROSSING[direction]}
    inject, extract = CARRIERS[carrier]
    value = EXAMPLES.get(name, "1")
    sent = extract(inject([(name, value)], direction), direction)
    received = extract(bare(carrier, name, value), direction)

    assert [known.lower() for known, _ in sent.fields] == ([name] if crosses else [])
    assert [known.lower() for known, _ in received.fields] == ([name] if crosses else [])
    assert received.dropped == (() if crosses else (name,))
    assert crosses or "zzcanary" not in str(inject([(name, "zzcanary")], direction))


@pytest.mark.req("HDR-3")
@pytest.mark.parametrize("name", NEVER)
@directions
def test_the_four_that_never_cross_are_on_no_list(name, direction):
    """Token, set-session, ETag and quality tier (SPEC-012 §3.3)."""
    assert name not in CROSSING[direction]
    assert name.lower() in headers.KNOWN


@pytest.mark.req("HDR-1", "HDR-2")
def test_the_lists_are_those_of_the_specification():
    """§3.1 and §3.2, word for word, and beside them only what proves the parent and names the session."""
    assert set(CROSSING[DOWN]) - {"CRP-Agent-Delegation-Grant"} == {
        "CRP-Agent-Safety-Budget", "CRP-Safety-Policy", "CRP-Agent-Session-Parent", "CRP-Agent-Loop-Depth",
        "CRP-Safety-Mode", "CRP-Compliance-Data-Residency",
    }  # fmt: skip
    assert set(CROSSING[UP]) - {"CRP-Context-Session-Id"} == {
        "CRP-Agent-Safety-Budget", "CRP-Safety-Hallucination-Risk", "CRP-Provenance-HMAC",
        "CRP-Provenance-Chain-Integrity", "CRP-Compliance-Audit-Trail-URI", "CRP-Quality-Score",
    }  # fmt: skip


@pytest.mark.req("HDR-1")
def test_a_delegation_is_written_as_the_specification_writes_it():
    """Parent, grant, depth, ceiling, policy, mode and residency; what was not demanded has no header."""
    assert dict(DOWNSTREAM)["CRP-Agent-Safety-Budget"] == "0.28"
    assert dict(DOWNSTREAM)["CRP-Agent-Loop-Depth"] == "1"
    few = propagation.delegated(
        parent=SESSION, grant="g", loop_depth=2, budget=Micros(1_000_000), policy="", mode="", residency=""
    )
    assert [name for name, _ in few] == [
        "CRP-Agent-Session-Parent", "CRP-Agent-Delegation-Grant", "CRP-Agent-Loop-Depth", "CRP-Agent-Safety-Budget",
    ]  # fmt: skip


@pytest.mark.req("HDR-1", "POL-6")
@carriers
def test_every_policy_line_crosses(carrier):
    """Two lines are two policies, and losing one would relax it."""
    inject, extract = CARRIERS[carrier]
    lines = [("CRP-Safety-Policy", "halt-on HIGH"), ("crp-safety-policy", "block-pii")]

    assert [value for _, value in extract(inject(lines, DOWN), DOWN).fields] == ["halt-on HIGH", "block-pii"]


@pytest.mark.req("HDR-6")
@carriers
@directions
@pytest.mark.parametrize("value", ["1.5", "NaN", "-1", "1e308", "0.5\r\nx: y", "0.5\u241f", ""])
def test_a_value_outside_its_grammar_is_refused(carrier, direction, value):
    """No carrier brings in a budget that a header could not (A-16, A-40)."""
    inject, extract = CARRIERS[carrier]
    with pytest.raises(Refused, match="INVALID_HEADER"):
        extract(bare(carrier, "crp-agent-safety-budget", value), direction)
    with pytest.raises(Refused, match="INVALID_HEADER"):
        inject([("CRP-Agent-Safety-Budget", value)], direction)


@pytest.mark.parametrize("held", [7, None, {"a": "b"}, ["0.5", 7]])
def test_a_value_that_is_no_text_is_refused(held):
    """JSON carriers can hold anything; a budget that is a number or an object is refused by name."""
    for extract, carried in (
        (propagation.from_mcp, {MCP_PREFIX + "agent-safety-budget": held}),
        (propagation.from_a2a, {A2A_EXTENSION: {"crp-agent-safety-budget": held}}),
    ):
        with pytest.raises(Refused, match="INVALID_HEADER"):
            extract(carried, DOWN)
    with pytest.raises(Refused, match="INVALID_HEADER"):
        propagation.from_a2a({A2A_EXTENSION: held if not isinstance(held, dict) else "x"}, DOWN)


@pytest.mark.req("HDR-6")
@directions
def test_one_value_in_two_lines_is_refused(direction):
    """Two budgets are no budget."""
    with pytest.raises(Refused, match="DUPLICATE_HEADER"):
        propagation.from_http([("crp-agent-safety-budget", "0.5"), ("CRP-Agent-Safety-Budget", "0.9")], direction)


def test_keys_are_those_that_the_carriers_allow():
    """gRPC keys are in lower case; MCP keys have a prefix of labels and a name, and not a reserved prefix."""
    assert all(name == name.lower() for name, _ in propagation.to_grpc(DOWNSTREAM, DOWN, TRACE))
    for key in propagation.to_mcp((*DOWNSTREAM, *UPSTREAM[1:]), DOWN):
        prefix, name = key.split("/")
        assert re.fullmatch(
            r"[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*", prefix
        )
        assert not {"mcp", "modelcontextprotocol"} & set(prefix.split("."))
        assert re.fullmatch(r"[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?", name)


def test_what_others_put_beside_ours_is_left_alone():
    """A progress token or another extension's data stays; what was ours before is replaced."""
    before = {"progressToken": 7, MCP_PREFIX + "agent-loop-depth": "9", "traceparent": "old"}
    meta = propagation.to_mcp([("CRP-Safety-Mode", "strict")], DOWN, meta=before)
    data = propagation.to_a2a([("CRP-Safety-Mode", "strict")], DOWN, metadata={"https://other.example/x": {"y": 1}})

    assert meta == {"progressToken": 7, MCP_PREFIX + "safety-mode": "strict"}
    assert data == {"https://other.example/x": {"y": 1}, A2A_EXTENSION: {"crp-safety-mode": "strict"}}
    assert propagation.from_mcp({"progressToken": 7}, DOWN).fields == ()
    assert propagation.from_a2a({}, DOWN).fields == ()


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"traceparent": TRACE.traceparent, "tracestate": "a=1"}, Trace(TRACE.traceparent, "a=1")),
        ({"traceparent": "00-" + "0" * 32 + "-" + "0b" * 8 + "-01", "tracestate": "a=1"}, Trace()),
        ({"traceparent": "ff" + TRACE.traceparent[2:]}, Trace()),
        ({"traceparent": "garbage", "tracestate": "a=1"}, Trace()),
        ({"traceparent": TRACE.traceparent, "tracestate": ",".join(f"k{n}=1" for n in range(33))},
         Trace(TRACE.traceparent)),
        ({"traceparent": TRACE.traceparent, "tracestate": "a\r\nb"}, Trace(TRACE.traceparent)),
        ({"traceparent": 7, "baggage": ["x"]}, Trace()),
        ({"baggage": "x=1" + "y" * 9000}, Trace()),
        ({"baggage": ",".join(f"k{n}=1" for n in range(65))}, Trace()),
    ],
)  # fmt: skip
def test_a_trace_that_is_malformed_is_dropped(values, expected):
    """W3C: a receiver that cannot read it starts anew; nothing malformed is handed on."""
    assert Trace.of(values) == expected


@pytest.mark.req("HDR-5")
@pytest.mark.parametrize(
    "ours", ["crp-safety-policy=halt-on%20HIGH", "CRP-Session-Token=a.b;p=1", "crp_sess=1", "crp.grant=x", "crp=1"]
)
def test_baggage_holds_nothing_of_ours(ours):
    """Baggage goes wherever a request goes, to model providers too."""
    assert Trace.of({"baggage": f"user=7, {ours} ,crpx=2"}).baggage == "user=7,crpx=2"
    assert ours not in str(propagation.to_http((), DOWN, Trace(baggage=ours)))


@pytest.mark.req("HDR-3", "HDR-6")
@given(
    st.dictionaries(
        st.sampled_from([*headers.KNOWN, "crp-unheard-of", "x-other", "CRP-Set-Session"]), st.text(max_size=40)
    ),
    st.sampled_from(list(Direction)),
)
def test_nothing_else_comes_through_whatever_is_sent(lines, direction):
    """For any lines: a refusal, or the allowed names with values of their grammar."""
    try:
        crossed = propagation.from_http(lines.items(), direction)
    except Refused:
        return
    allowed = set(CROSSING[direction])
    assert all(name in allowed for name, _ in crossed.fields)
    assert all(re.fullmatch(r"[\x20-\x7e]+", value) for _, value in crossed.fields)
    if direction is UP:
        assert all(RESPONSE_SYNTAX[name].fullmatch(value) for name, value in crossed.fields)


def test_binary_metadata_of_ours_does_not_cross():
    """gRPC's -bin keys hold bytes: none of our headers does."""
    crossed = propagation.from_grpc([("crp-safety-policy-bin", b"x"), ("other-bin", b"y")], DOWN)

    assert (crossed.fields, crossed.dropped) == ((), ("crp-safety-policy-bin",))
    assert crossed.get("CRP-Safety-Policy") is None
    assert propagation.from_grpc(propagation.to_grpc(DOWNSTREAM, DOWN), DOWN).get("crp-safety-mode") == "strict"
