"""Which kernels and experiments there are, and the cycles of one, of every audit log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.chain.chain import EventRecord
from tests.contract.test_audit_log_held import do
from tests.support.audit.audit import session_id

pytestmark = pytest.mark.req("OBS-5")

LAST = ("9999", "")


def event(number: int, sequence: int, kind: str, at: int, data: str = "{}") -> EventRecord:
    return EventRecord(
        session_id=session_id(number), sequence=sequence, window_id="", event_type=kind, severity=2,
        timestamp=f"2026-01-02T03:04:{at:02}.000000Z", data_json=data, key_version=1, hmac=f"{number}-{sequence}",
    )  # fmt: skip


def test_kernels_are_listed_the_latest_first_by_what_their_data_hold(log):
    """Of one time the higher id is first; a page goes on before another; experiments and later records are no kernels."""
    texts = ('{"kernel":"a","scope":"x"}', '{"kernel":"b","scope":"x"}', '{"kernel":"a","scope":"y"}')
    first, second, third = (event(n, 1, "KERNEL_OPENED", min(n, 2), text) for n, text in enumerate(texts, 1))
    later = replace(first, sequence=2, event_type="KERNEL_EXECUTED", hmac="1-2")
    do(log, lambda w: w.add_events([first, later, second, third, event(4, 1, "DECISION_OPENED", 9)]))

    def listed(*mentioning: str, limit: int = 9, before: tuple[str, str] = LAST) -> list[str]:
        return [one[0] for one in log.opened_last("KERNEL_OPENED", mentioning, limit, before)]

    assert listed("", "") == [session_id(3), session_id(2), session_id(1)]
    assert listed("", "", limit=1, before=(third.timestamp, third.session_id)) == [session_id(2)]
    assert listed('"scope":"x"', "") == [session_id(2), session_id(1)]
    assert listed('"scope":"x"', '"kernel":"a"') == [session_id(1)]
    assert [one[2] for one in log.opened_last("DECISION_OPENED", ("", ""), 9, LAST)] == ["{}"]


@pytest.mark.parametrize(
    ("before", "limit", "cycles"),
    [(0, 2, [5, 4]), (0, 9, [5, 4, 3, 2, 1]), (4, 2, [3, 2]), (2, 9, [1]), (1, 9, []), (6, 1, [5]), (9, 2, [])],
)  # fmt: skip
def test_cycles_are_listed_the_latest_first_without_what_is_between_them(log, before, limit, cycles):
    """From the last one on, or before one; a number that nothing was decided under yet is before nothing."""
    opened = event(1, 1, "DECISION_OPENED", 1)
    parts = [
        event(1, 2 * n + part, kind, 1, f'{{"cycle":"{n}"}}')
        for n in range(1, 6)
        for part, kind in enumerate(("DECISION_CYCLE", "DECISION_TRACE"))
    ]
    do(log, lambda w: w.add_events([opened, *parts, event(2, 1, "DECISION_CYCLE", 1)]))
    found = log.cycles(session_id(), before, limit)

    assert [one.data_json for one in found] == [f'{{"cycle":"{n}"}}' for n in cycles]
