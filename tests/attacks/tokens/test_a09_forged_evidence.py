"""A-09: evidence that is forged, stale, oversized or tampered with binds to nothing, and is never an error of the caller's."""

from __future__ import annotations

import json

import pytest

from interlock.domain.binding import cookie
from interlock.domain.binding.digests import Digests
from interlock.sidecar.wiring import binding_reader

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("ATT-3", "ATT-1")

LONG = "The river rises in the mountains and flows through the plain to the sea."
SCOPE = "anonymous"


def session(response) -> str:
    return response.headers["crp-context-session-id"]


def sealed_cookie(response) -> str:
    return response.headers["set-cookie"].partition(";")[0].removeprefix("crp_session=")


def forged(value: str, session_id: str) -> dict[str, str]:
    """Cookies that an attacker could make of a genuine one, of a session's id, or of nothing."""
    tag, mac = value.split(".")
    other = cookie.value_of(Digests(b"k" * 32, SCOPE), session_id)
    return {
        "other signature": f"{tag}.{'0' * 32}",
        "other tag": f"{'0' * 32}.{mac}",
        "swapped": f"{mac}.{tag}",
        "upper case": value.upper(),
        "cut off": value[:-1],
        "longer": value + "0",
        "unsigned": tag,
        "another key": other,
        "the id": session_id,
        "oversized": value + "x" * 20_000,
        "twice": f"{value}; crp_session={value}",
        "empty": "",
        "quoted": f'"{value}"',
        "bytes": "\xff\xfe",
    }


async def test_a09_a_forged_cookie_is_no_cookie(sidecar):
    """Each is ignored: a session of its own, told in its trail, and the genuine one still works."""
    first = await sidecar.chat()
    genuine = sealed_cookie(first)
    for name, value in forged(genuine, session(first)).items():
        answer = await sidecar.chat(headers={"cookie": f"crp_session={value}".encode("latin-1")})
        events = [event for event in await sidecar.events(session(answer)) if event.event_type == "SESSION_BOUND"]

        assert (answer.status_code, answer.headers["crp-session-binding"]) == (200, "caller"), name
        assert session(answer) != session(first), name
        if value:
            assert json.loads(events[0].data_json) == {"rank": "caller", "unusable": ["cookie"]}, name
    again = await sidecar.chat(headers={"cookie": f"crp_session={genuine}"})

    assert session(again) == session(first)


async def test_a09_a_genuine_cookie_of_no_session_names_none(sidecar):
    """Signed here for this caller, but for a session that is not there any more: a new session, and no error."""
    digests = Digests(binding_reader(sidecar.settings).key, SCOPE)
    stale = cookie.value_of(digests, "crp_sess_" + "7" * 32)
    answer = await sidecar.chat(headers={"cookie": f"crp_session={stale}"})

    assert (answer.status_code, answer.headers["crp-session-binding"]) == (200, "caller")
    assert sealed_cookie(answer) != stale


@pytest.mark.parametrize(
    "headers",
    [
        {"x-session-id": "x" * 9000},
        {"x-session-id": "a\tb"},
        {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-00"},
        {"traceparent": "x" * 9000},
        {"baggage": "session.id=" + "%20" * 2000},
        {"baggage": ",".join(["session.id=a"] * 300)},
    ],
)
async def test_a09_names_that_cannot_be_used_are_left_out(sidecar, headers):
    """Twice the same: two sessions, both told."""
    answers = [await sidecar.chat(headers=headers) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert session(answers[0]) != session(answers[1])
    events = [event.event_type for event in await sidecar.events(session(answers[0]))]
    assert "SESSION_BOUND" in events


async def talk(sidecar, *turns: str, **more):
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": text} for place, text in enumerate(turns)
    ]
    return await sidecar.chat(messages=messages, **more)


async def test_a09_a_tampered_answer_is_not_recognised(sidecar, provider):
    """The history goes on from what is genuine before it; from nothing, where all of it is changed."""
    provider.in_turn([LONG, LONG + " It is 1,094 km long.", "It is what it is, as far as anybody knows."])
    first = await talk(sidecar, "Where does it rise?")
    second = await talk(sidecar, "Where does it rise?", LONG, "How long is it?")
    tampered = await talk(sidecar, "Where does it rise?", LONG, "How long is it?", LONG + " It is 9 km long.", "Sure?")
    invented = await talk(sidecar, "Where does it rise?", LONG.replace("sea", "lake"), "Sure?")

    assert session(second) == session(tampered) == session(first)
    assert tampered.headers["crp-provenance-window-lineage"].count("->") == 1  # it branches off the first window
    assert session(invented) != session(first)
    assert invented.headers["crp-session-binding"] == "caller"


async def test_a09_a_common_answer_proves_nothing(sidecar, provider):
    """Two conversations whose only answer is the same short word are two sessions, and a third of that history a third."""
    provider.answers("Yes.")
    begun = [await talk(sidecar, "Is it?") for _ in range(2)]
    after = await talk(sidecar, "Is it?", "Yes.", "Are you sure?")

    assert len({session(answer) for answer in (*begun, after)}) == 3


async def test_a09_conflicting_evidence_ends_in_one_session(sidecar):
    """A hint, a cookie, a trace and a conversation of four sessions: the strongest decides, the others are told."""
    trace = "00-" + "5c" * 16 + "-" + "00f0" * 4 + "-01"
    hinted = await sidecar.chat(headers={"x-session-id": "one"})
    cookied = await sidecar.chat()
    traced = await sidecar.chat(headers={"traceparent": trace})
    headers = {"x-session-id": "one", "cookie": f"crp_session={sealed_cookie(cookied)}", "traceparent": trace}
    answer = await sidecar.chat(headers=headers)
    events = [event for event in await sidecar.events(session(answer)) if event.event_type == "SESSION_BOUND"]

    assert len({session(one) for one in (hinted, cookied, traced)}) == 3
    assert session(answer) == session(hinted)
    assert json.loads(events[-1].data_json)["disagreeing"] == ["cookie", "trace"]
