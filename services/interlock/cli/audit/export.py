"""``interlock audit export``: a session's events as NDJSON or OCSF, one page in memory at a time (SPEC-011 §4)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import typer

from interlock.audit.export import ocsf
from interlock.audit.export.export import included, read, to_line
from interlock.audit.store.log import StoreFailed
from interlock.audit.store.opening import open_reader, place
from interlock.cli.output import Format, refusals
from interlock.domain import ids
from interlock.domain.chain.audit_events import SEVERITIES
from interlock.domain.chain.chain import EventRecord
from interlock.domain.errors import not_found, unavailable
from interlock.runtime.settings.loading import load


class As(StrEnum):
    """Format of exported events."""

    NDJSON = "ndjson"
    OCSF = "ocsf"


class Least(StrEnum):
    """Minimum severity to export; WARN, ERROR and CRITICAL are always exported (SPEC-011 §6)."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"


Lines = Callable[[Iterable[EventRecord]], Iterator[str]]
_LINES: Mapping[As, Lines] = {As.NDJSON: lambda events: map(to_line, events), As.OCSF: ocsf.lines}

SESSION = typer.Argument(help="Session id: crp_sess_ and 32 hex digits, as in CRP-Context-Session-Id.")
FORMAT = typer.Option(
    As.NDJSON, "--format", help="ndjson (SPEC-011 §4.1) or ocsf (OCSF 1.1.0, API Activity, for a SIEM)."
)
LEAST = typer.Option(Least.DEBUG, "--min-severity", help="Minimum severity; WARN and above are always included.")
FILE = typer.Option(None, "--output", help="File to write. Default: standard output.")


@contextmanager
def store_refusals(output: Format) -> Iterator[None]:
    """Print a refusal, with a hint if the store failed, and end the command with its exit code."""
    with refusals(output):
        try:
            yield
        except StoreFailed as failed:
            failed.metadata["hint"] = failed.hint
            raise


def export(session_id: str = SESSION, form: As = FORMAT, least: Least = LEAST, file: Path | None = FILE) -> None:
    """Write a session's events in order, one per line. No line contains terminal control characters.

    A chain verifies only with all its events: leave none out for an auditor.

    Exit 0: written. 2: no such session, or it cannot be read or written.
    """
    with store_refusals(Format.TEXT), closing(open_reader(settings := load())) as reader:
        events = read(reader, ids.check("crp_sess_", session_id))
        first = next(events, None)
        if first is None:
            raise not_found("SESSION_NOT_FOUND", f"{place(settings)} has no records of that session")
        number = SEVERITIES.index(least) + 1
        lines = _LINES[form](event for event in chain([first], events) if included(event, number))
        if file is None:
            _write(sys.stdout.buffer, lines)
        else:
            _write_file(file, lines)


def _write(stream: BinaryIO, lines: Iterable[str]) -> None:
    stream.writelines(line.encode() + b"\n" for line in lines)
    stream.flush()


def _write_file(file: Path, lines: Iterable[str]) -> None:
    try:
        with file.open("wb") as stream:
            _write(stream, lines)
    except OSError as error:
        raise unavailable("FILE_NOT_WRITTEN", f"{file}: {type(error).__name__}", retry_after_ms=0) from None
