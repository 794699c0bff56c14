"""What is verified link by link is what verifies as a whole: no way of going on, and no tampering, tells the two apart."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace

import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import (
    CHAIN_BROKEN,
    WINDOW_SEALED,
    EventRecord,
    WindowRecord,
    event_hmac,
    seal_data,
    verify_chain,
    window_hmac,
)
from interlock.domain.chain.chain_state import CASCADED, ChainState
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED
from interlock.domain.chain.prefix import Prefix, continues
from tests.support.audit.audit import hash_of, session_id, window_id
from tests.support.audit.records import a_window

KEYS = {1: bytes(range(32)), 2: bytes(range(1, 33))}
NOTED = {
    "DPE_COMPLETED": "{}",
    "STREAM_BEGUN": '{"until_ms":7}',
    CASCADED: '{"after":"0.400000"}',
    "SUB_AGENT_STARTED": '{"session_id":"crp_sess_1"}',
    "WINDOW_FAILED": "{}",
    "CONTENT_DROPPED": "{}",
    CHAIN_BROKEN: "{}",
    CONTENT_ERASED: "{}",
}
ENDING = {CHAIN_BROKEN, CONTENT_ERASED, TRUNCATED}


@dataclass
class Session:
    """A chain as the audit service makes it, in memory."""

    windows: list[WindowRecord] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)

    def record(self, event_type: str, data: str, *, window: str = "", key: int = 1) -> None:
        previous = self.events[-1].hmac if self.events else ""
        made = EventRecord(
            session_id(), len(self.events) + 1, window, event_type, 2, "2026-05-25T10:00:00Z", data, key, ""
        )
        self.events.append(replace(made, hmac=event_hmac(KEYS[key], made, previous)))

    def seal(self, picks: list[int], *, key: int = 1) -> None:
        """Seal a window after those that *picks* choose; the first one has none to choose from."""
        parents = {self.windows[pick % len(self.windows)].window_id: None for pick in picks} if self.windows else {}
        rows = [row for row in self.windows if row.window_id in parents]
        number = len(self.windows) + 1
        made = a_window(
            number,
            window_number=max((row.window_number for row in rows), default=0) + 1,
            parent_ids=tuple(sorted(row.window_id for row in rows)),
            response_hash=hash_of(number),
            key_version=key,
        )
        sealed = window_hmac(
            KEYS[key],
            session_id=made.session_id,
            window_number=made.window_number,
            timestamp=made.timestamp,
            response_hash=made.response_hash,
            report_hash=made.report_hash,
            parent_hmacs=[row.hmac for row in rows],
        )
        self.windows.append(replace(made, hmac=sealed))
        self.record(WINDOW_SEALED, canonical_json(seal_data(self.windows[-1])), window=made.window_id, key=key)


sealing = st.tuples(st.just("seal"), st.lists(st.integers(0, 50), min_size=1, max_size=3), st.sampled_from([1, 1, 2]))
quiet = [name for name in NOTED if name not in ENDING]
recording = st.tuples(st.just("record"), st.sampled_from([*quiet, *quiet, *ENDING - {TRUNCATED}]), st.just(1))
clean = st.lists(sealing | recording.filter(lambda step: step[1] in quiet), min_size=1, max_size=10)
steps = st.lists(sealing | recording, min_size=1, max_size=8)


def played(session: Session, done) -> None:
    for what, which, key in done:
        if what == "seal":
            session.seal(which, key=key)
        else:
            session.record(which, NOTED[which], window=window_id(len(session.windows) or 1))


def tampered(session: Session, first: int, how: str, at: int, other: int) -> None:
    """Change, at or after the event of place *first*, what an attacker without a key can change."""
    events, windows = session.events, session.windows
    place = first + at % max(1, len(events) - first)
    behind = [
        row for row in windows if any(one.window_id == row.window_id and one.event_type == WINDOW_SEALED for one in events[first:])
    ]  # fmt: skip
    row = behind[other % len(behind)] if behind else None
    if how in {"severity", "hmac", "data_json", "window_id", "event_type", "key_version", "timestamp"} and place < len(
        events
    ):
        value = {"severity": 5, "key_version": 3}.get(how, WINDOW_SEALED if how == "event_type" else hash_of(9))
        events[place] = replace(events[place], **{how: value})
    elif how == "swap" and place + 1 < len(events):
        one, two = events[place], events[place + 1]
        events[place], events[place + 1] = (
            replace(two, sequence=one.sequence), replace(one, sequence=two.sequence)
        )  # fmt: skip
    elif how == "cut" and place < len(events):
        del events[place]
    elif how == "forge":
        events.append(replace(events[-1], sequence=events[-1].sequence + 1, hmac=hash_of(7)))
    elif how == "plant":
        windows.append(a_window(90 + other % 3, window_number=1 + other % 3, parent_ids=(), hmac=hash_of(8)))
    elif row is not None and how.startswith("row."):
        name = how[4:]
        value = {"charge_micros": 0, "window_number": 7, "parent_ids": (), "key_version": 2}.get(name, hash_of(6))
        windows[windows.index(row)] = replace(row, **{name: value})
    elif row is not None and how == "drop":
        windows.remove(row)


HOW = [
    "none", "none", "none", "severity", "hmac", "data_json", "window_id", "event_type", "key_version", "timestamp", "swap", "cut",
    "forge", "plant", "drop", "row.charge_micros", "row.window_number", "row.parent_ids", "row.hmac", "row.settle_json",
    "row.stored_report_hash", "row.status", "row.key_version",
]  # fmt: skip


def joined(session: Session, events: list[EventRecord]) -> list[WindowRecord]:
    """The windows that events seal, as the database joins them."""
    sealed = [event.window_id for event in events if event.event_type == WINDOW_SEALED]
    return [row for window in sealed for row in session.windows if row.window_id == window]


@pytest.mark.req("ATT-4")
@settings(max_examples=250)
@given(clean, steps, st.sampled_from(HOW), st.integers(0, 40), st.integers(0, 40), st.booleans())
def test_a_continuation_is_clean_exactly_where_the_whole_chain_verifies(before, after, how, at, other, again):
    """Of the old part only a digest is left, and still the verdict on old and new together is the one of both."""
    session = Session()
    played(session, before)
    first = len(session.events)
    prefix = Prefix()
    prefix.add(list(session.windows), list(session.events))
    if again:  # the prefix itself has grown link by link
        played(session, [("seal", [at], 1)])
        assert continues(prefix, session.windows[-1:], session.events[first:], KEYS.get, rows=len(session.windows))
        prefix.add(session.windows[-1:], session.events[first:])
        first = len(session.events)
    played(session, after)
    tampered(session, first, how, at, other)
    new = session.events[first:]

    whole = verify_chain(session.windows, session.events, KEYS.get)
    clean_whole = not whole.faults and not any(event.event_type in ENDING for event in session.events)
    sealed = joined(session, new)
    found = continues(prefix, sealed, new, KEYS.get, rows=len(session.windows))

    note(f"{how}: {'clean' if found else 'not clean'}")
    assert found == clean_whole
    if found:
        prefix.add(sealed, new)
        assert prefix.state() == ChainState.from_events(session.events)
        excluded = session.windows[-1].window_id if session.windows else ""
        assert prefix.state(excluding=excluded) == ChainState.from_events(session.events, excluding=excluded)
        assert (prefix.sequence, prefix.hmac) == (session.events[-1].sequence, session.events[-1].hmac)


@pytest.mark.req("ATT-4")
@settings(max_examples=30)
@given(st.integers(1, 120), st.integers(8, 64))
def test_every_part_is_read_again_within_the_bound(length, within):
    """While the chain grows, no record waits longer than the number of windows that is promised."""
    session, prefix = Session(), Prefix()
    last_read: dict[int, int] = {}
    for window in range(1, length + 1):
        first = len(session.events)
        if (places := prefix.due(within)) is not None:
            parts = [prefix.part(place) for place in range(*places)]
            events = session.events[parts[0].first - 1 : parts[-1].last]
            assert prefix.stands(places, joined(session, events), list(map(astuple, events)))
            last_read |= dict.fromkeys(range(parts[0].first, parts[-1].last + 1), window)
        played(session, [("record", "DPE_COMPLETED", 1), ("seal", [window - 2], 1)])
        prefix.add(session.windows[-1:], session.events[first:])
        last_read |= dict.fromkeys(range(first + 1, len(session.events) + 1), window)

        assert window - min(last_read.values()) <= within
