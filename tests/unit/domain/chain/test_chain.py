"""The chain's HMACs against known answers, and what checking a chain says.

The answers were made with another implementation: ``printf '%s' FIELDS | openssl dgst -sha256 -mac HMAC -macopt
hexkey:KEY``, the fields joined by U+241F.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import (
    EventRecord,
    Fault,
    Integrity,
    WindowRecord,
    chained,
    content_hash,
    event_hmac,
    seal_data,
    unchained_window_hmac,
    verify_chain,
    window_hmac,
)
from interlock.domain.errors import Refused
from tests.support.audit.audit import build, hash_of, keys, session_id, temporary_log, window_id

KEY = bytes(range(32))
SESSION = "crp_sess_0123456789abcdef0123456789abcdef"
WINDOW = "crp_win_0123456789abcdef0123456789abcdef"

TV_030 = [
    "sha256:c05284d6974bcc4ec8259cb028c1f3c9f3cdb0040b93616f3378960e87813f31",
    "sha256:92fa76fcdcffb22f3a85ff1406050a05f8d3dfb093b1babfbe9647801578eee0",
    "sha256:06efc3ccffac652f07501ba13b651a9f750ad23df01c4c8d5f0ff5dad0b75109",
]
FAN_IN = "sha256:9ecffd8ee585ed57c9fb6397f5f456fc3660697496b6d223b0b3cea27481c73d"
UNCHAINED = "sha256:df28849c7b1d7afa78a2f1d9b2d401806a02b55f9c02ad4d5224b4dd804971b3"
EVENTS = [
    "sha256:9092a99048308c3b815e842f4c99e384d80492f45e16b1a022a5f089a01a6668",
    "sha256:902dff6d063ecf52cd569cac9010820de654dc54cfa05589a6b8f549f0f153c3",
]


def digest(digit: str) -> str:
    return "sha256:" + digit * 64


def fields(number: int = 1, minute: int = 0, response: str = "a", report: str = "b", **changes) -> dict:
    return {
        "session_id": SESSION,
        "window_number": number,
        "timestamp": f"2026-05-25T10:0{minute}:00Z",
        "response_hash": digest(response),
        "report_hash": digest(report),
        **changes,
    }


def an_event(sequence: int = 1, **changes) -> EventRecord:
    data = '{"composite_score":0.14,"risk_level":"LOW"}'
    event = EventRecord(SESSION, sequence, WINDOW, "DPE_COMPLETED", 2, "2026-05-25T10:00:02Z", data, 1, "")
    return replace(event, **changes)


@pytest.mark.req("PRV-1")
def test_window_hmac_known_answers():
    """TV-030 with real bytes: three linear windows, the root chained to the empty text."""
    first = window_hmac(KEY, **fields(), parent_hmacs=[])
    second = window_hmac(KEY, **fields(2, 1, "c", "d"), parent_hmacs=[first])
    third = window_hmac(KEY, **fields(3, 2, "e", "f"), parent_hmacs=[second])

    assert [first, second, third] == TV_030


@pytest.mark.req("PRV-1")
def test_fan_in_known_answer_whatever_the_order():
    """A fan-in joins its parents sorted, so the order in which they finished does not show."""
    parents = [TV_030[1], TV_030[2]]

    assert window_hmac(KEY, **fields(4, 3, "1", "2"), parent_hmacs=parents) == FAN_IN
    assert window_hmac(KEY, **fields(4, 3, "1", "2"), parent_hmacs=parents[::-1]) == FAN_IN


@pytest.mark.req("PRV-1")
def test_fan_out_siblings_share_a_parent_and_differ():
    """Two children of one window chain from the same HMAC and are told apart by what they hold."""
    left, right = (window_hmac(KEY, **fields(2, 1, response), parent_hmacs=[TV_030[0]]) for response in ("c", "d"))

    assert left != right


@pytest.mark.req("PRV-1")
def test_unchained_window_hmac_known_answer():
    """CRP-Provenance-Window-HMAC covers the window alone, tagged so that it is never the root's chained one."""
    assert unchained_window_hmac(KEY, **fields()) == UNCHAINED
    assert UNCHAINED != TV_030[0]


def test_event_hmac_known_answers():
    """Two events in a row, the second chained to the first."""
    first = event_hmac(KEY, an_event(), "")

    assert [first, event_hmac(KEY, an_event(2), first)] == EVENTS


@pytest.mark.parametrize(
    "change",
    [
        {"session_id": session_id(9)},
        {"sequence": 2},
        {"window_id": ""},
        {"event_type": "DPE_COMPLETEX"},
        {"severity": 3},
        {"timestamp": "2026-05-25T10:00:03Z"},
        {"data_json": "{}"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_event_hmac_covers_every_field(change):
    """No field of an event can be changed without changing its HMAC."""
    assert event_hmac(KEY, an_event(**change), "") != EVENTS[0]


@pytest.mark.req("PRV-1")
@pytest.mark.parametrize("char", ["\u241f", "\n", "\x00", "\x7f", "\x85", "\ud800"], ids=ascii)
def test_a_field_that_could_hide_a_boundary_is_refused(char):
    """The separator, control characters and lone surrogates never get into the MAC's input (A-28)."""
    for make in (
        lambda: window_hmac(KEY, **fields(timestamp=f"2026{char}"), parent_hmacs=[]),
        lambda: unchained_window_hmac(KEY, **fields(timestamp=f"2026{char}")),
        lambda: event_hmac(KEY, an_event(event_type=f"A{char}"), ""),
        lambda: event_hmac(KEY, an_event(), f"sha256:{char}"),
    ):
        with pytest.raises(Refused) as refused:
            make()
        assert refused.value.reason == "AMBIGUOUS_FIELD"


@pytest.mark.parametrize("parents", [[""], ["a|b"], [TV_030[0], ""]])
def test_a_parent_that_could_be_several_or_none_is_refused(parents):
    """A parent HMAC is never empty and never holds the bar that joins them."""
    with pytest.raises(Refused) as refused:
        window_hmac(KEY, **fields(), parent_hmacs=parents)
    assert refused.value.reason == "AMBIGUOUS_FIELD"


# --- checking a chain


def a_chain(windows: int = 3):
    with temporary_log() as log:
        build(log, windows)
        return log.chain(session_id())


def check(windows, events):
    return verify_chain(windows, events, keys(session_id()))


@pytest.mark.req("PRV-2")
def test_a_sound_chain_is_valid_with_its_sums():
    """TV-030: every window and event verifies; tip and charges come with the verdict."""
    chain = a_chain()

    found = check(chain.windows, chain.events)

    assert found.integrity is Integrity.VALID
    assert (found.windows, found.events, found.charged_micros) == (3, 9, 450_000)
    assert found.chain_tip == chain.windows[-1].hmac


@pytest.mark.req("PRV-2")
def test_one_window_alone_is_unverified():
    """There is nothing to chain from (SPEC-011 §3.3)."""
    chain = a_chain(1)

    assert check(chain.windows, chain.events).integrity is Integrity.UNVERIFIED


@pytest.mark.req("PRV-2")
def test_a_changed_response_hash_is_broken_at_its_window():
    """TV-031: window 2's content hash is changed after signing."""
    chain = a_chain()
    windows = [*chain.windows[:1], replace(chain.windows[1], response_hash=hash_of(99)), chain.windows[2]]

    found = check(windows, chain.events)

    assert found.integrity is Integrity.BROKEN
    assert Fault("window", 2, "HMAC_MISMATCH") in found.faults
    assert {fault.index for fault in found.faults} == {2}


@pytest.mark.req("PRV-2")
def test_events_are_taken_by_sequence_not_by_time():
    """A clock that went back changes nothing (reliability.md §7 row 15)."""
    chain = a_chain()

    assert check(chain.windows, chain.events[::-1]).integrity is Integrity.VALID


@pytest.mark.req("PRV-2")
def test_another_key_verifies_nothing():
    """Under the wrong master key every event fails; none passes by accident."""
    chain = a_chain()

    found = verify_chain(chain.windows, chain.events, lambda _version: bytes(32))

    assert {fault.index for fault in found.faults if fault.what == "event"} == set(range(1, 10))


def test_a_key_version_that_is_not_at_hand_is_a_fault():
    """What cannot be checked is not sound."""
    chain = a_chain()

    found = verify_chain(chain.windows, chain.events, lambda _version: None)

    assert {fault.reason for fault in found.faults} == {"KEY_UNKNOWN"}


@pytest.mark.req("PRV-2")
def test_a_deleted_window_leaves_its_charge_and_a_partial_chain():
    """The seal's event still vouches for the window: the charge counts, and its children still verify."""
    chain = a_chain()

    found = check([chain.windows[0], chain.windows[2]], chain.events)

    assert found.integrity is Integrity.PARTIAL
    assert found.faults == (Fault("window", 2, "MISSING_WINDOW"),)
    assert found.charged_micros == 450_000


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize("charge", [0, 149_999, -1, 2**62])
def test_an_edited_charge_never_refills(charge):
    """Of row and seal the higher charge counts."""
    chain = a_chain()
    windows = [replace(chain.windows[0], charge_micros=charge), *chain.windows[1:]]

    found = check(windows, chain.events)

    assert Fault("window", 1, "SEAL_MISMATCH") in found.faults
    assert found.charged_micros >= 450_000


def test_a_window_without_its_seal_event_is_found():
    """All events of the session deleted: each window misses the event that vouches for it."""
    chain = a_chain(2)

    assert [f for f in check(chain.windows, []).faults if f.reason == "MISSING_SEAL"] == [
        Fault("window", 1, "MISSING_SEAL"),
        Fault("window", 2, "MISSING_SEAL"),
    ]


def test_the_end_of_the_events_cut_off_is_found_by_the_windows():
    """Windows whose seals are gone show that events are missing at the end."""
    chain = a_chain()

    assert Fault("window", 3, "MISSING_SEAL") in check(chain.windows, chain.events[:-1]).faults


def test_both_chains_cut_at_one_window_look_whole():
    """The documented limit: a consistent cut is invisible here, and the session's state is what reveals it."""
    chain = a_chain()

    assert check(chain.windows[:2], chain.events[:6]).integrity is Integrity.VALID


def test_a_report_that_is_gone_or_changed_is_found():
    """The report hash is compared with the hash of the bytes that are stored now."""
    chain = a_chain()
    first, second, third = chain.windows
    windows = [replace(first, stored_report_hash=""), replace(second, stored_report_hash=hash_of(7)), third]

    assert check(windows, chain.events).faults == (
        Fault("window", 1, "MISSING_REPORT"),
        Fault("window", 2, "REPORT_HASH_MISMATCH"),
    )


def test_an_event_that_is_there_twice_is_named():
    """Only the copy is the fault; what follows still verifies."""
    chain = a_chain()

    assert check(chain.windows, [*chain.events, chain.events[3]]).faults == (Fault("event", 4, "DUPLICATE_SEQUENCE"),)


def test_a_gap_is_named_once_by_its_first_sequence():
    """Three events gone in a row are one fault, and the event behind them cannot be checked."""
    chain = a_chain()

    found = check(chain.windows, [*chain.events[:3], *chain.events[5:]])

    assert found.faults == (Fault("event", 4, "SEQUENCE_GAP"),)


# --- graphs


def dag(shape: dict[str, list[str]]):
    """Return windows and seal events for a graph of name → parents, in order."""
    key = keys(session_id())(1)
    windows: dict[str, WindowRecord] = {}
    events: list[EventRecord] = []
    for position, (name, parents) in enumerate(shape.items(), 1):
        number = max((windows[p].window_number for p in parents), default=0) + 1
        hashes = {"response_hash": hash_of(position), "report_hash": content_hash(name.encode())}
        place = {"session_id": session_id(), "window_number": number, "timestamp": "2026-05-25T10:00:00Z"}
        made = window_hmac(key, **place, **hashes, parent_hmacs=[windows[p].hmac for p in parents])
        windows[name] = WindowRecord(
            **place,
            **hashes,
            window_id=window_id(position),
            parent_ids=tuple(windows[p].window_id for p in parents),
            risk_level=1,
            charge_micros=10,
            status="COMPLETED",
            settle_json="{}",
            trail_id="crp_trail_" + "0" * 32,
            request_hash=hash_of(position),
            key_version=1,
            hmac=made,
            stored_report_hash=hashes["report_hash"],
        )
        seal = canonical_json(seal_data(windows[name]))
        events.append(
            EventRecord(session_id(), position, windows[name].window_id, "WINDOW_SEALED", 2, "t", seal, 1, "")
        )
    return windows, list(chained(key, events, ""))


DIAMOND = {"root": [], "a": ["root"], "b": ["root"], "c": ["a"], "join": ["c", "b"]}


@pytest.mark.req("PRV-1", "PRV-2")
def test_a_fan_out_with_a_fan_in_verifies():
    """SPEC-004 §9: siblings from one parent, and a window from several."""
    windows, events = dag(DIAMOND)

    assert check(list(windows.values()), events).integrity is Integrity.VALID


@pytest.mark.req("PRV-1", "PRV-2")
@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("join", {"parent_ids": (window_id(4),)}, "HMAC_MISMATCH"),
        ("a", {"parent_ids": ()}, "HMAC_MISMATCH"),
        ("c", {"parent_ids": (window_id(77),)}, "MISSING_PARENT"),
        ("c", {"window_number": 2}, "NUMBER_MISMATCH"),
        ("c", {"hmac": hash_of(1)}, "HMAC_MISMATCH"),
        ("c", {"timestamp": "2026\u241f"}, "MALFORMED"),
        ("c", {"key_version": 5}, "KEY_UNKNOWN"),
        ("c", {"status": "HALTED"}, "SEAL_MISMATCH"),
    ],
)
def test_a_changed_node_of_the_graph_is_named(name, changes, reason):
    """Whatever is changed about a node, the fault is at that node."""
    windows, events = dag(DIAMOND)
    changed = replace(windows[name], **changes)

    found = check([*(w for n, w in windows.items() if n != name), changed], events)

    assert Fault("window", changed.window_number, reason) in found.faults
    assert found.integrity is Integrity.BROKEN


def test_two_roots_and_a_doubled_window_are_faults():
    """A session has one root, and each window once."""
    windows, events = dag({"root": [], "other": []})

    found = check([*windows.values(), windows["root"]], events)

    assert Fault("window", 1, "SEVERAL_ROOTS") in found.faults
    assert Fault("window", 1, "DUPLICATE_WINDOW") in found.faults


def test_a_second_seal_of_a_window_is_a_fault():
    """Two seals of one window would let its row follow either."""
    windows, events = dag({"root": []})
    [again] = chained(keys(session_id())(1), [replace(events[0], sequence=2)], events[0].hmac)

    assert Fault("window", 1, "DUPLICATE_SEAL") in check(list(windows.values()), [*events, again]).faults


@pytest.mark.req("PRV-2")
def test_the_tip_is_the_last_seal_whatever_its_number():
    """Of several leaves the one that was sealed last, by sequence."""
    windows, events = dag({"root": [], "a": ["root"], "c": ["a"], "b": ["root"]})

    assert check(list(windows.values())[::-1], events[::-1]).chain_tip == windows["b"].hmac


@pytest.mark.req("PRV-2", "DAG-2")
def test_a_window_sealed_before_its_parent_is_a_fault():
    """Even where every HMAC is right: what a window was made from was there before it."""
    windows, events = dag({"root": [], "a": ["root"], "c": ["a"]})
    order = [events[0], events[2], events[1]]
    moved = chained(keys(session_id())(1), [replace(e, sequence=n) for n, e in enumerate(order, 1)], "")

    found = check(list(windows.values()), list(moved))

    assert found.faults == (Fault("window", 3, "SEALED_BEFORE_PARENT"),)
    assert found.faults[0].window_id == windows["c"].window_id
