"""Records to put straight into an audit log, without sealing: what a log keeps is not its business to judge."""

from __future__ import annotations

from dataclasses import replace

from interlock.domain.chain.chain import EventRecord, WindowRecord, content_hash
from tests.support.audit.audit import hash_of, session_id, window_id

REPORT = b'{"claims_total":2}'


def an_event(sequence: int, session: int = 1, **changes) -> EventRecord:
    event = EventRecord(
        session_id(session), sequence, window_id(1), "DPE_COMPLETED", 2, "2026-05-25T10:00:00Z",
        '{"text":"naïve ␟ \\n"}', 1, hash_of(sequence),
    )  # fmt: skip
    return replace(event, **changes)


def a_window(number: int, session: int = 1, **changes) -> WindowRecord:
    window = WindowRecord(
        session_id=session_id(session),
        window_id=window_id(number, session),
        window_number=number,
        parent_ids=(window_id(number - 1, session),) if number > 1 else (),
        response_hash=hash_of(1),
        report_hash=content_hash(REPORT),
        risk_level=3,
        charge_micros=150_000,
        status="COMPLETED",
        settle_json='{"a":1}',
        trail_id=f"crp_trail_{session:016x}{number:016x}",
        request_hash=hash_of(2),
        timestamp="2026-05-25T10:00:00Z",
        key_version=1,
        hmac=hash_of(3),
        stored_report_hash=content_hash(REPORT),
    )
    return replace(window, **changes)


def adding(*records: EventRecord | WindowRecord):
    def work(writing):
        for record in records:
            if isinstance(record, EventRecord):
                writing.add_events([record])
            else:
                writing.add_window(record, REPORT)
        return len(records)

    return work
