"""The bindings of an answer's sentence compared with those of its sources (SPEC-005 §5.3)."""

from __future__ import annotations

from dataclasses import replace

from interlock.dpe.bindings.evidence import Evidence
from interlock.dpe.bindings.exchanged import exchanged
from interlock.dpe.bindings.findings import Finding
from interlock.dpe.bindings.frames import Frame
from interlock.dpe.bindings.passages import Passage
from interlock.dpe.bindings.polarity import reversed_predicate, turned_setting
from interlock.dpe.bindings.roles import moved
from interlock.dpe.bindings.scopes import raised, unbounded


def compare(claimed: Passage, evidence: Evidence, mentioned: frozenset[str]) -> list[Finding]:
    """Return what one sentence binds otherwise than the sources. *mentioned* are the content words of its answer."""
    found = [
        replace(finding, about=_words(frame))
        for frame in claimed.frames
        for finding in (_of_frame(frame, evidence),)
        if finding is not None
    ]
    if not found and (swap := exchanged(claimed, evidence)) is not None:
        found.append(replace(swap, about=claimed.content))
    limit = unbounded(claimed, evidence, mentioned)
    return [*found, *([replace(limit, about=claimed.content)] if limit is not None else [])]


def _words(frame: Frame) -> frozenset[str]:
    return frozenset([frame.predicate, *(word for _, filler in frame.all() for word in filler.all)])


def _of_frame(frame: Frame, evidence: Evidence) -> Finding | None:
    turned = reversed_predicate(frame, evidence) or turned_setting(frame, evidence)
    return turned or moved(frame, evidence) or raised(frame, evidence)
