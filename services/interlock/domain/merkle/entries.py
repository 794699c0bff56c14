"""What the entries of a log show about one another without any key: sequences, seals, and signed marks of removals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from interlock.domain.chain.chain import WINDOW_SEALED, EventRecord
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED
from interlock.domain.merkle.entry import decode_entry

LOG_SESSION = "crp_sess_" + "0" * 32
"""Session of the entries about the log itself. No agent ever receives this id."""

_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)

FOLLOWING = frozenset({"SEQUENCE_GAP", "MISSING_PARENT", "NUMBER_MISMATCH"})
"""Problems of an entry that follow from an earlier unreadable entry."""

Problem = tuple[str, str]
"""Reason and detail."""


class LogMarks:
    """The marks of retention and erasure: sessions whose entries lost their bytes, and sessions whose contents were erased.

    Only marks that a checkpoint covers count, because anyone could write one after the last checkpoint.
    """

    def __init__(self) -> None:
        self._found: list[tuple[int, str, list[tuple[int, int]]]] = []

    def take(self, position: int, event: EventRecord) -> Iterator[Problem]:
        """Record a mark. An incomplete mark is a problem."""
        named: list[tuple[int, int]] = []
        if event.event_type != CONTENT_ERASED:
            found = _positions(_object(event.data_json).get("positions"), position)
            if found is None or sum(end - first for first, end in found) != event.sequence - 1:
                yield "MARK_INVALID", "a TRUNCATED mark names every entry of its session before it"
            else:
                named = found
        self._found.append((position, event.session_id, named))

    def runs_within(self, size: int) -> list[tuple[int, int]]:
        """Return the entries that marks below *size* declare removed."""
        return [run for position, _, named in self._found if position < size for run in named]

    def erased_within(self, size: int) -> set[str]:
        """Return the sessions that marks below *size* declare erased or truncated."""
        return {session_id for position, session_id, _ in self._found if position < size}


class Losses:
    """Losses of the log's end that a reviewer acknowledged. After each, the log continued as its next generation."""

    @dataclass(frozen=True)
    class Loss:
        """One loss: entries [kept, anchored_size) of an earlier generation are not in this log."""

        position: int
        generation: int
        kept: int
        anchored_size: int
        cause: str
        anchored_root: str
        reviewer_id: str
        approval_id: str

    def __init__(self) -> None:
        self._found: list[Losses.Loss] = []

    def take(self, position: int, event: EventRecord) -> Iterator[Problem]:
        """Record a loss. An invalid one is a problem."""
        loss = read_loss(position, event)
        if loss is None or loss.kept > position or loss.generation <= self._last():
            yield "MARK_INVALID", "an acknowledged loss names its generation and what was anchored"
        else:
            self._found.append(loss)

    def within(self, size: int, generation: int) -> list[Losses.Loss]:
        """Return the losses that checkpoints up to *size*, the last one of *generation*, vouch for."""
        return [loss for loss in self._found if loss.position < size and loss.generation <= generation]

    def _last(self) -> int:
        return self._found[-1].generation if self._found else 1


def read_loss(position: int, event: EventRecord) -> Losses.Loss | None:
    """Return the acknowledged loss in an entry of ``LOG_SESSION``; ``None`` for invalid data."""
    data = _object(event.data_json)
    numbers = [data.get(name) for name in ("generation", "kept", "anchored_size")]
    texts = [data.get(name) for name in ("cause", "anchored_root", "reviewer_id", "approval_id")]
    if not all(type(one) is int and 0 <= one < 2**63 for one in numbers) or not all(isinstance(t, str) for t in texts):
        return None
    return Losses.Loss(position, *numbers, *texts)  # type: ignore[arg-type]


class LogTrails:
    """The sequence of each session and every sealed window, updated entry by entry."""

    def __init__(self, report_hash: Callable[[str], str | None] | None) -> None:
        self._report_hash = report_hash
        self._tips: dict[str, tuple[int, int]] = {}
        self._windows: dict[str, tuple[str, int]] = {}
        self._unreported: dict[str, list[tuple[int, str]]] = {}
        self._disturbed = -1
        self.recorded_emergencies = 0
        """Number of emergency actions so far that a sidecar had recorded while their kernel could not be reached (T8)."""

    @property
    def sessions(self) -> int:
        """Number of sessions so far."""
        return len(self._tips)

    @property
    def windows(self) -> int:
        """Number of sealed windows so far."""
        return len(self._windows)

    def disturbed(self, position: int) -> None:
        """Record that the entry at *position* was altered. Consequences of that are not reported again."""
        self._disturbed = position

    def take(self, position: int, text: bytes, marks: LogMarks, losses: Losses) -> Iterator[Problem]:
        """Read an entry and yield what does not match the entries before it."""
        try:
            event = decode_entry(text)
        except ValueError:
            yield "MALFORMED_ENTRY", ""
            return
        sequence, seen_at = self._tips.get(event.session_id, (0, -1))
        if event.sequence != sequence + 1 and self._disturbed <= seen_at and not _is_mark(event, sequence):
            reason = "DUPLICATE_SEQUENCE" if event.sequence <= sequence else "SEQUENCE_GAP"
            yield reason, f"sequence {event.sequence} after {sequence}"
        self._tips[event.session_id] = (event.sequence, position)
        if event.event_type == WINDOW_SEALED:
            yield from self._sealed(position, event)
        elif event.event_type in {TRUNCATED, CONTENT_ERASED}:
            yield from (losses if event.session_id == LOG_SESSION else marks).take(position, event)
        elif event.event_type == "KERNEL_EMERGENCY" and "recorded" in _object(event.data_json):
            self.recorded_emergencies += 1

    def without_report(self, erased: AbstractSet[str]) -> Iterator[tuple[int, str]]:
        """Return the sealed windows whose report is absent without an erasure."""
        for session_id, found in self._unreported.items():
            if session_id not in erased:
                yield from found

    def _sealed(self, position: int, event: EventRecord) -> Iterator[Problem]:
        """Check a seal against its parents' seals: the window is new, its parents are sealed, its number follows theirs."""
        data = _object(event.data_json)
        parents, number = data.get("parent_ids"), data.get("window_number")
        hashes = [data.get(name) for name in ("hmac", "response_hash", "report_hash")]
        hashed = all(isinstance(found, str) and _HASH.fullmatch(found) for found in hashes)
        if not hashed or not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
            yield "SEAL_INVALID", "a seal names its parents and its hashes"
            return
        found = [self._windows.get(parent, ("", 0)) for parent in parents]
        if event.window_id in self._windows:
            yield "DUPLICATE_SEAL", ""
        elif self._disturbed < 0 and any(session != event.session_id for session, _ in found):
            yield "MISSING_PARENT", ""
        elif self._disturbed < 0 and number != max((of for _, of in found), default=0) + 1:
            yield "NUMBER_MISMATCH", f"window {number}"
        if self._report_hash is not None:
            yield from self._reported(position, event, str(data["report_hash"]), self._report_hash)
        self._windows[event.window_id] = (event.session_id, number if type(number) is int else 0)

    def _reported(
        self, position: int, event: EventRecord, sealed: str, report_hash: Callable[[str], str | None]
    ) -> Iterator[Problem]:
        there = report_hash(event.window_id)
        if there is None:
            self._unreported.setdefault(event.session_id, []).append((position, event.window_id))
        elif there != sealed:
            yield "REPORT_HASH_MISMATCH", ""


def _is_mark(event: EventRecord, sequence: int) -> bool:
    """Whether *event* declares that all earlier entries of its session were truncated. The entries themselves are checked apart."""
    return event.event_type == TRUNCATED and sequence == 0 and event.session_id != LOG_SESSION


def _positions(value: object, before: int) -> list[tuple[int, int]] | None:
    if not isinstance(value, list):
        return None
    found: list[tuple[int, int]] = []
    for run in value:
        if not (isinstance(run, list) and len(run) == 2 and all(type(one) is int for one in run)):
            return None
        if not (found[-1][1] if found else 0) <= run[0] < run[1] <= before:
            return None
        found.append((run[0], run[1]))
    return found


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
