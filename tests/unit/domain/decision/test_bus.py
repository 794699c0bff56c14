"""The rules of the signal bus: who may put what, what a full bus lets go, and what a reader missed (DEC-2)."""

from __future__ import annotations

import json

import pytest

from interlock.domain.decision.bus import (
    MOST_COLLECTED,
    BusGap,
    BusPlace,
    BusPlaces,
    emitter_fault,
    gap_between,
    put_fault,
    shared_out,
)
from interlock.domain.decision.definition import defined, signal_schema
from interlock.domain.decision.engine import decide
from interlock.domain.decision.reading import canonical
from interlock.domain.decision.replay import replayed
from interlock.domain.decision.signals import apart
from interlock.domain.errors import Refused
from tests.support.decisions import ANALYST, ML, NOW_US, RULES, answer, decided, inputs, signal

pytestmark = pytest.mark.req("DEC-2")

TYPES = ("metric_plateau", "metric_divergence", "high_variance")
FAULTS = (
    ({"confidence": "nan"}, "SIGNAL_CONFIDENCE_INVALID"),
    ({"confidence": "1.01"}, "SIGNAL_CONFIDENCE_INVALID"),
    ({"confidence": "-0.1"}, "SIGNAL_CONFIDENCE_INVALID"),
    ({"type": "no_such"}, "SIGNAL_TYPE_UNKNOWN"),
    ({"type": "trial_failed"}, "SIGNAL_UNDECLARED"),
    ({"source": "strategy"}, "SIGNAL_SOURCE_FOREIGN"),
    ({"payload": {"metric": "loss"}}, "SIGNAL_PAYLOAD_INVALID"),
    ({"payload": {"metric": "loss", "slope": 0.0, "more": 1}}, "SIGNAL_PAYLOAD_INVALID"),
    ({"payload_json": '{"metric": "loss", "slope": NaN}'}, "SIGNAL_PAYLOAD_INVALID"),
    ({"payload": {"metric": "x" * 5_000, "slope": 0.0}}, "SIGNAL_PAYLOAD_TOO_LARGE"),
    ({"at": repr(NOW_US / 1e6 - 4_000)}, "SIGNAL_CLOCK_PAST"),
    ({"at": repr(NOW_US / 1e6 + 60)}, "SIGNAL_CLOCK_FUTURE"),
    ({"at": "inf"}, "SIGNAL_CLOCK_INVALID"),
)


def held(number: int, source: str = "analyst", at_us: int = NOW_US) -> dict[str, object]:
    """A signal that a bus holds."""
    payload = {"metric": "loss", "slope": float(number)}
    return {"id": f"sig_{number:03}", "type": "metric_plateau", "source": source, "at_us": at_us + number,
            "confidence": 900_000, "payload": payload}  # fmt: skip


def on_bus(*signals: object) -> dict[str, object]:
    """What a cycle took from the bus."""
    return {"epoch": "ab", "after": 0, "to": len(signals), "fault": "", "restarted": False, "gone": 0, "left": {},
            "signals": [*signals]}  # fmt: skip


@pytest.mark.parametrize(("change", "reason"), FAULTS)
def test_a_bad_signal_is_refused_by_name(change, reason):
    """Type, declaration, source, time, confidence and payload each have a reason."""
    found = put_fault(signal(**change), RULES, source="analyst", types=TYPES, now_us=NOW_US, agents=["analyst"])

    assert found == (None, "", reason)


@pytest.mark.parametrize(
    "metric", ["loss", '"payload":{},"source":"x","type":"y"}', 'é\n\\", "source":', ',"source":"x"']
)
def test_a_signal_is_written_once_and_read_apart_without_its_payload(metric):
    """Whatever its payload says: the text is the canonical one, and its parts are those of the signal."""
    payload = {"metric": metric, "slope": 0.5}
    raw = signal(payload=payload)
    found, text, fault = put_fault(raw, RULES, source="analyst", types=TYPES, now_us=NOW_US, agents=[])
    rest, payload_json = apart(text)

    assert fault == ""
    assert text == canonical(found)
    assert {**rest, "payload": json.loads(payload_json)} == found
    assert payload_json == canonical(payload)


def test_the_owner_may_not_speak_as_an_agent():
    """A part of the execution layer is heard, an agent's name is not its owner's to use."""
    as_agent = put_fault(signal(), RULES, source="", types=TYPES, now_us=NOW_US, agents=["analyst"])
    as_part, _, fault = put_fault(
        signal(source="executor"), RULES, source="", types=TYPES, now_us=NOW_US, agents=["analyst"]
    )

    assert as_agent == (None, "", "SIGNAL_SOURCE_FOREIGN")
    assert (as_part["source"], fault) == ("executor", "")


def test_a_flood_takes_the_places_of_its_own_sender():
    """Of a full bus the oldest of whoever holds most goes; what the quiet one said stays."""
    places = BusPlaces(4)
    places.put("quiet", "a")
    gone = [number for one in range(10) for number in places.put(f"flood{one}", "b")[2]]

    assert gone == [2, 3, 4, 5, 6, 7, 8]
    assert places.by_id["quiet"] == 1
    assert places.put("quiet", "a") == (1, True, [])


def test_missing_numbers_are_told_with_their_count():
    """First, last and how many; nothing is missing where numbers follow one another."""
    assert gap_between(3, [4, 5, 6]) is None
    assert gap_between(3, []) is None
    assert gap_between(0, [5, 6, 9]) == BusGap(1, 8, 6)


@pytest.mark.parametrize("token", ["x", "ab.", ".1", "ab.-1", "ab.1.2", "ä.1", "ab." + "1" * 70])
def test_a_token_that_nobody_gave_is_refused(token):
    """And one that was given comes back."""
    with pytest.raises(Refused, match="token"):
        BusPlace.of(token)
    assert BusPlace.of(BusPlace("ab", 7).token) == BusPlace("ab", 7)


def test_sources_take_turns_in_what_a_cycle_takes():
    """A thousand of one leave the three of another in; what is left is counted by source."""
    flood = [held(number, "loud") for number in range(900)]
    kept, left = shared_out([*flood, *(held(number, "quiet") for number in (901, 902, 903))])

    assert len(kept) == MOST_COLLECTED
    assert sum(one["source"] == "quiet" for one in kept) == 3
    assert left == {"loud": 900 - MOST_COLLECTED + 3}
    assert [one["id"] for one in kept] == sorted(one["id"] for one in kept)
    assert held(899, "loud") in kept, "the newest are taken"


def test_what_a_cycle_takes_has_a_size():
    """However few the signals are."""
    large = [{**held(number), "payload": {"metric": "x" * 4_000, "slope": 0.0}} for number in range(200)]
    kept, left = shared_out(large)

    assert 50 < len(kept) < 70
    assert left == {"analyst": 200 - len(kept)}


def test_signals_of_the_bus_are_in_the_trace_and_replay():
    """Their ids in order, each once, and where the bus was read up to; the same bytes whatever the order was."""
    first = decided(bus=on_bus(held(2), held(1)))
    again = decided(bus=on_bus(held(1), held(2)))

    assert first["signals"] == ["sig_001", "sig_002"]
    assert first["after"]["bus"] == {"epoch": "ab", "number": 2}
    assert first["bus"]["to"] == 2
    assert canonical(first) == canonical(again)
    assert replayed(ML, canonical(first)).is_same


def test_a_signal_that_came_by_two_ways_is_heard_once_and_an_old_one_not():
    """The bus and the execution layer may tell the same; an hour later it is the past."""
    from interlock.domain.decision.signals import admitted

    raw = signal(source="executor")
    same, _ = admitted(raw, RULES, source="", types=TYPES, now_us=NOW_US)
    trace = decided(given=[raw], bus=on_bus(same, held(1, at_us=NOW_US - 4_000_000_000)))

    assert trace["signals"] == [same["id"]]
    assert [one["reason"] for one in trace["signals_rejected"]] == ["SIGNAL_CLOCK_PAST"]


def test_the_rules_of_a_role_speak_on_a_signal_of_the_bus():
    """A silent agent is spoken for by what was emitted between the cycles."""
    from tests.support.decisions import PROTOCOL

    trace = decided(answer(PROTOCOL, arrival="LATE"), bus=on_bus(held(1)))

    assert trace["outcome"] == "SWITCH_HPO"
    assert trace["chosen"]["signals_used"] == ["sig_001"]


def test_a_registered_type_is_known_to_the_cycle_and_its_replay():
    """It is an input of the cycle, so the definition stays what it was."""
    schema = signal_schema('{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}')
    agent = {**ANALYST, "outputs": [*ANALYST["outputs"], "own"]}
    sent = answer(agent, signals=[signal("own", payload={"n": 1})])
    trace = decided(sent, types={"own": schema})

    assert len(trace["signals"]) == 1
    assert trace["rules_hash"] == RULES.hash
    assert replayed(ML, canonical(trace)).is_same
    bad = decided(answer(agent, signals=[signal("own", payload={"n": "1"})]), types={"own": schema})
    assert not bad["signals"]


@pytest.mark.parametrize(
    "schema",
    [
        '{"$ref": "https://example.org/schema.json"}',
        '{"type": "object", "properties": {"a": {"$ref": "#/x"}}}',
        '{"type": "string"}',
        "[]",
        "{",
        '{"type": "object", "patternProperties": {}}',
        json.dumps({"type": "object", "description": "x" * 5_000}),
    ],
)
def test_a_schema_that_could_lead_elsewhere_is_refused(schema):
    """References, wherever they stand, what is no object, and what is too long."""
    with pytest.raises(Refused) as refused:
        signal_schema(schema)
    assert refused.value.reason == "DECISION_SIGNAL_INVALID"


def test_an_agent_that_failed_is_not_heard_on_the_bus_either():
    """What speaks for it are its role's rules, in cycles."""
    assert [emitter_fault(one) for one in ("ACTIVE", "DEGRADED", "PROBATION", "FAILED")] == [
        "", "", "SIGNAL_AGENT_ON_PROBATION", "SIGNAL_AGENT_FAILED",
    ]  # fmt: skip


def test_a_trace_without_a_bus_has_the_bytes_that_it_always_had():
    """Traces that were sealed before there was a bus replay."""
    trace = decide(defined(ML), inputs())

    assert not {"bus", "reserved"} & trace.keys()
    assert "bus" not in trace["after"]
