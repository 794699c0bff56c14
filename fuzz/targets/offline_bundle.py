"""A bundle for an auditor: every line may be hostile, and a log that is not the signed one is never found whole (A-27, A-29)."""

from __future__ import annotations

from interlock.domain.chain.chain import EventRecord
from interlock.domain.merkle.bundle import Examined, Examiner, Head, as_json
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tiles import format_line, parse_line
from interlock.domain.merkle.tree import leaf_hash, merkle_root

WORDS = (
    b'{"leaf":"', b'"event_type":"TRUNCATED"', b'"event_type":"CONTENT_ERASED"', b'"event_type":"WINDOW_SEALED"',
    b'"positions":[[0,3]]', b'"last_sequence":1', b'"anchored_size":8', b'"sequence":0', b'"sequence":99', b"\\ud800", b"{}",
    b"[]", b"null", b'"data":"{\\"', b"true", b"1e3",
)  # fmt: skip


def event(number: int) -> EventRecord:
    """An event of one of two sessions."""
    session = "crp_sess_" + f"{number % 2:02x}" * 16
    when = f"2026-05-25T10:00:{number:02}.000000Z"
    return EventRecord(
        session, 1 + number // 2, "", "DISPATCH_COMPLETED", 2, when, f'{{"n":{number}}}', 1, f"h{number}"
    )


TRUE = tuple(encode_entry(event(number)) for number in range(8))
LEAVES = tuple(map(leaf_hash, TRUE))
HEADS = (Head(4, merkle_root(LEAVES[:4]), anchored=True), Head(8, merkle_root(LEAVES), anchored=False))


def examined(lines: list[bytes], *, known: bool) -> Examined:
    """Examine the lines against the signed heads, and against the known hashes too."""
    return Examiner(HEADS).run([parse_line(line) for line in lines], LEAVES if known else (), whole=known)


def TestOneInput(data: bytes) -> None:
    """No line is an error of ours; whatever is not the signed log to the byte has findings, with an index inside."""
    lines = data.split(b"\n")
    for known in (False, True):
        found = examined(lines, known=known)
        assert found.found >= len(found.findings)
        assert as_json(found)["faults"] == found.found
        if tuple(lines) == TRUE:
            assert found.found == 0, found.findings
            assert (found.signed, found.anchored) == (8, 4)
        else:
            assert found.found > 0
            assert all(0 <= one.index <= max(8, len(lines)) for one in found.findings), found.findings


def seeds() -> dict[str, bytes]:
    """The log; with one entry edited, left out, doubled, moved, added, cut off, and hidden without a mark."""
    log = list(TRUE)
    hidden = format_line(b"", LEAVES[2])
    truncated = encode_entry(
        EventRecord("crp_sess_" + "00" * 16, 5, "", "TRUNCATED", 2, "2026-05-25T10:01:00.000000Z",
                    '{"last_sequence":4,"head":"h6","windows":0,"charged_micros":0,"chain_tip":"","positions":[[2,3]]}', 1, "h8")
    )  # fmt: skip
    cases = {
        "whole": log,
        "edited": [*log[:3], log[3].replace(b'"severity":2', b'"severity":1'), *log[4:]],
        "left_out": [*log[:3], *log[4:]],
        "doubled": [*log[:4], *log[3:]],
        "swapped": [log[1], log[0], *log[2:]],
        "added": [*log, log[-1]],
        "cut": log[:6],
        "hidden": [*log[:2], hidden, *log[3:]],
        "hidden_and_told": [*log[:2], hidden, *log[3:], truncated],
        "spaced": [log[0].replace(b",", b", "), *log[1:]],
    }
    return {name: b"\n".join(lines) for name, lines in cases.items()}
