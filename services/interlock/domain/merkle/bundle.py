"""The examination of a whole log with nothing but its bytes and the log's public key (AUD-6, A-27, A-29).

Everything is derived again: leaf hashes from the entries, roots from the leaf hashes, sequences and seals from the content of
the entries. Tiles give the expected hash of a position, those of the anchor before those of the bundle. Checkpoints with verified
signatures give the expected roots. No key of the HMAC chain is needed, and only hashed data are trusted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from interlock.domain.merkle.alignment import CHANGED, aligned
from interlock.domain.merkle.entries import FOLLOWING, LogMarks, LogTrails, Losses
from interlock.domain.merkle.tiles import Line, beyond, runs
from interlock.domain.merkle.tree import Frontier

MOST_FINDINGS = 1000
"""Maximum number of findings that are listed. All are counted."""

What = Literal["entry", "checkpoint", "tile", "report", "window", "session"]


@dataclass(frozen=True)
class Finding:
    """A fault: at the position of an entry, a window at that of its seal, a checkpoint at its size.

    A ``session`` has its faults at a sequence or window number of its own, where the log has no position for them.
    """

    what: What
    index: int
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Head:
    """A checkpoint with a valid signature, where it was found, and the generation of the log that it belongs to."""

    size: int
    root: bytes
    anchored: bool
    generation: int = 1
    signed_at: int = 0


@dataclass(frozen=True)
class Examined:
    """The result of the examination. ``signed`` and ``anchored`` are the ends of the ranges [0, n) that checkpoints vouch for."""

    size: int
    root: bytes
    findings: tuple[Finding, ...]
    found: int
    signed: int
    anchored: int
    signed_at: int
    sessions: int
    windows: int
    truncated: tuple[tuple[int, int], ...]
    erased: tuple[str, ...]
    losses: tuple[Losses.Loss, ...]
    recorded_emergencies: int = 0
    """Emergency actions that a sidecar recorded while their kernel could not be reached."""

    @property
    def verdict(self) -> str:
        """Return VALID, TRUNCATED where signed marks declare what is gone, or BROKEN."""
        if self.found:
            return "BROKEN"
        return "TRUNCATED" if self.truncated or self.erased or self.losses else "VALID"


class Examiner:
    """Examines one log. ``report_hash`` returns the hash of a window's stored report, ``None`` if there is no report."""

    def __init__(self, heads: Iterable[Head], report_hash: Callable[[str], str | None] | None = None) -> None:
        self._heads: dict[int, list[Head]] = {}
        for head in heads:
            self._heads.setdefault(head.size, []).append(head)
        self._findings: list[Finding] = []
        self._found = 0
        self._tree, self._other = Frontier(), Frontier()
        self._good = Head(0, b"", anchored=False)
        self._anchored = 0
        self._failed: list[tuple[Head, int]] = []
        self._hidden: list[int] = []
        self._marks, self._losses = LogMarks(), Losses()
        self._trails = LogTrails(report_hash)

    def add(self, finding: Finding) -> None:
        """Add a finding of other code, such as an invalid signature."""
        self._found += 1
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(finding)

    def run(self, lines: Iterable[Line], leaves: Iterable[bytes], *, whole: bool) -> Examined:
        """Examine entries against their known hashes. Both are read once, in order. ``whole``: the hashes cover the whole log."""
        self._reach(0)
        size, parted, there = 0, False, 0
        for position, line, leaf, reason in aligned(lines, leaves, whole=whole):
            there += line is not None
            if reason:
                if not parted:
                    self._other, parted = copy.deepcopy(self._tree), True
                self.add(Finding("entry", position, reason))
                self._trails.disturbed(position)
            elif line is not None:
                self._read(position, line)
            known = leaf if leaf is not None or line is None or reason else line[1]
            if known is not None:
                self._tree.append(known)
                size = position + 1
            if parted and line is not None:
                self._other.append(line[1])
            if size in self._heads and self._tree.size == size:
                parted = self._reach(size, parted=parted) and parted
        return self._ended(there)

    def _read(self, position: int, line: Line) -> None:
        if not line[0]:
            self._hidden.append(position)
            return
        for reason, detail in self._trails.take(position, line[0], self._marks, self._losses):
            self.add(Finding("entry", position, reason, detail))

    def _reach(self, size: int, *, parted: bool = False) -> bool:
        """Compare the root at *size* with the signed ones. Return whether entries and known hashes still differ."""
        root = self._tree.root()
        for head in self._heads.pop(size, ()):
            if head.root == root:
                self._held(head)
                if parted:
                    self._other = copy.deepcopy(self._tree)
                    parted = False
            elif parted and self._other.size == size and head.root == self._other.root():
                self._tile_at_fault()
                self._tree, root = copy.deepcopy(self._other), head.root
                self._held(head)
                parted = False
            else:
                self._failed.append((head, self._good.size))
        return parted

    def _held(self, head: Head) -> None:
        self._good = max(self._good, head, key=lambda one: (one.size, one.generation, one.signed_at))
        if head.anchored:
            self._anchored = max(self._anchored, head.size)

    def _tile_at_fault(self) -> None:
        """The entries match the signature, so the hashes that they were compared with do not."""
        self._findings = [
            replace(found, what="tile", reason="TILE_MISMATCH")
            if found.what == "entry" and found.reason == CHANGED and found.index >= self._good.size
            else found
            for found in self._findings
        ]

    def _ended(self, there: int) -> Examined:
        size = self._tree.size
        self._failed += [(head, self._good.size) for heads in self._heads.values() for head in heads]
        losses = self._losses.within(self._good.size, self._good.generation)
        self._fail_checkpoints(size, losses)
        erased = self._marks.erased_within(self._good.size)
        self._without_mark(beyond(runs(self._hidden), self._marks.runs_within(self._good.size)))
        for position, name in self._trails.without_report(erased):
            self.add(Finding("report", position, "MISSING_REPORT", name))
        return Examined(
            size=there,
            root=self._tree.root(),
            findings=tuple(sorted(self._findings, key=lambda found: (found.index, found.what != "entry"))),
            found=self._found,
            signed=self._good.size,
            anchored=self._anchored,
            signed_at=self._good.signed_at,
            sessions=self._trails.sessions,
            windows=self._trails.windows,
            truncated=tuple(runs(self._hidden)),
            erased=tuple(sorted(erased)),
            losses=tuple(losses),
            recorded_emergencies=self._trails.recorded_emergencies,
        )

    def _without_mark(self, gone: Sequence[tuple[int, int]]) -> None:
        """Report entries whose bytes are gone without a signed mark. Consequences of that are not reported again."""
        if gone:
            kept = [one for one in self._findings if one.reason not in FOLLOWING or one.index < gone[0][0]]
            self._found -= len(self._findings) - len(kept)
            self._findings = kept
        for first, end in gone:
            for position in range(first, min(end, first + MOST_FINDINGS)):
                self.add(Finding("entry", position, "MISSING_BYTES", "no signed mark declares their removal"))

    def _fail_checkpoints(self, size: int, losses: Sequence[Losses.Loss]) -> None:
        """Report the checkpoints that the log does not reach or does not match, unless a loss was acknowledged."""
        told: set[tuple[str, int]] = set()
        for head, good in sorted(self._failed, key=lambda found: (found[0].size, not found[0].anchored)):
            if any(head.generation < loss.generation and head.size > loss.kept for loss in losses):
                continue
            reason = "CHAIN_TRUNCATED" if head.size > size else "ROOT_MISMATCH"
            if head.size <= self._good.size:
                reason = "LOG_FORKED"  # a later one matches, and both are signed
            if (reason, good) in told:
                self._found += 1
                continue
            told.add((reason, good))
            if head.size > size:
                self.add(Finding("entry", size, "MISSING_ENTRY", f"entries {size} to {head.size - 1} were signed"))
            where = "anchor" if head.anchored else "log"
            detail = f"of the {where}; the last that holds is of size {good}"
            self.add(Finding("checkpoint", head.size, reason, detail))


def as_json(found: Examined) -> Mapping[str, object]:
    """Return the output of ``interlock audit verify --offline -o json``. Of a log without recorded emergency actions it says nothing of them."""
    recorded = {"recorded_emergencies": found.recorded_emergencies} if found.recorded_emergencies else {}
    return recorded | {
        "verdict": found.verdict,
        "entries": found.size,
        "root": found.root.hex(),
        "sessions": found.sessions,
        "windows": found.windows,
        "signed": [0, found.signed],
        "signed_at": found.signed_at,
        "anchored": [0, found.anchored],
        "unanchored": [found.anchored, found.size],
        "faults": found.found,
        "findings": [vars(finding) for finding in found.findings],
        "truncated": [list(run) for run in found.truncated],
        "erased_sessions": list(found.erased),
        "losses": [vars(loss) for loss in found.losses],
    }
