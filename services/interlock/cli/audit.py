"""``interlock audit``: check and export a session's audit trail, straight from the database of the settings.

Read-only, so it works beside a running service and without one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import typer

from interlock.audit.export import printable, read, to_line
from interlock.audit.log import StoreFailed
from interlock.audit.log_sql import SqliteReader
from interlock.audit.tree import Reader, walk_tree, walked
from interlock.audit.verify import examine
from interlock.audit.wiring import database_path
from interlock.cli.audit_tree import as_json, print_tree, tree_as_json
from interlock.cli.output import NEGATIVE, Format, Output, print_json, print_refusal
from interlock.domain import ids
from interlock.domain.chain import Integrity, Verification
from interlock.domain.errors import Refused, not_found, unavailable
from interlock.runtime.config import Settings, load
from interlock.runtime.keys import Keyring, load_keyring

app = typer.Typer(no_args_is_help=True, help="Verify and export the audit chain of a session.")

SESSION = typer.Argument(help="Session id, crp_sess_ and 32 hex digits; CRP-Context-Session-Id tells it.")
TREE = typer.Option(False, "--tree", help="The session is the root of an agent tree: walk all sessions below it too.")
FILE = typer.Option(None, "--output", help="File to write. Absent: standard output.")


@app.command()
def verify(session_id: str = SESSION, tree: bool = TREE, output: Output = Format.TEXT) -> None:
    """Check every HMAC, hash, number and link of a session's trail, from the stored bytes.

    With --tree: of every session that it delegated to, and so on down, and what each parent recorded of its children
    against their own trails (SPEC-012 §8.2). The first break is named.

    Exit 0: VALID, or UNVERIFIED where one window alone has nothing to chain from. 1: BROKEN or PARTIAL. 2: no such
    session, or it cannot be told.
    """
    if tree:
        _verify_tree(session_id, output)
        return
    with _refusals(as_json=output is Format.JSON):
        settings = load()
        with closing(_reader(settings)) as reader:
            keyring = _keyring(settings)
            stored = reader.chain(ids.check("crp_sess_", session_id))
            if not stored.events and not stored.windows:
                raise _unknown(reader)
        found = examine(stored, session_id, keyring)
    if output is Format.JSON:
        print_json({"session_id": session_id, **as_json(found)})
    else:
        typer.echo(_as_text(session_id, found))
    raise typer.Exit(NEGATIVE if found.faults else 0)


def _verify_tree(root_id: str, output: Format) -> None:
    with _refusals(as_json=output is Format.JSON):
        settings = load()
        with closing(_reader(settings)) as log:
            found = walked(walk_tree(Reader(log, _keyring(settings)), ids.check("crp_sess_", root_id)))
    if output is Format.JSON:
        print_json(tree_as_json(found))
    else:
        print_tree(found)
    raise typer.Exit(0 if found.integrity in {Integrity.VALID, Integrity.UNVERIFIED} else NEGATIVE)


@app.command()
def export(session_id: str = SESSION, file: Path | None = FILE) -> None:
    """Write a session's events as NDJSON (SPEC-011 §4.1): one event a line, in order.

    Exit 0: written. 2: no such session, or it cannot be read or written.
    """
    with _refusals(as_json=False), closing(_reader(load())) as reader:
        events = read(reader, ids.check("crp_sess_", session_id))
        first = next(events, None)
        if first is None:
            raise _unknown(reader)
        lines = map(to_line, chain([first], events))
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


def _reader(settings: Settings) -> SqliteReader:
    path = database_path(settings)
    if not path.is_file():
        raise not_found(
            "AUDIT_LOG_NOT_FOUND",
            f"there is no audit log at {path}",
            hint="say where it is with INTERLOCK_AUDIT_URL or INTERLOCK_STATE_DIR",
        )
    return SqliteReader(path)


def _unknown(reader: SqliteReader) -> Refused:
    return not_found("SESSION_NOT_FOUND", f"{reader.path} has nothing of that session")


def _keyring(settings: Settings) -> Keyring:
    """Return the keys, without making a master key where there is none: it could have sealed nothing."""
    if settings.master_key is None and not (settings.state_dir / "master.key").is_file():
        raise unavailable(
            "MASTER_KEY_MISSING",
            "there is no master key to check the chain with",
            retry_after_ms=0,
            hint="set INTERLOCK_MASTER_KEY, or INTERLOCK_STATE_DIR to the folder of master.key",
        )
    return load_keyring(settings)


@contextmanager
def _refusals(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        if isinstance(refused, StoreFailed):
            refused.metadata["hint"] = refused.hint
        raise typer.Exit(print_refusal(refused, as_json=as_json)) from None


def _as_text(session_id: str, found: Verification) -> str:
    lines = [
        f"{found.integrity.name}  {session_id}",
        f"  {found.windows} windows, {found.events} events, {found.charged_micros / 1_000_000:.6f} charged",
        f"  tip {printable(found.chain_tip) or '(none)'}",
        *(
            f"  {fault.what} {fault.index}: {fault.reason}  {printable(fault.window_id)}".rstrip()
            for fault in found.faults
        ),
    ]
    if _every_event_fails(found):
        lines.append("  Every event fails: is this the master key that sealed them?")
    return "\n".join(lines)


def _every_event_fails(found: Verification) -> bool:
    failed = sum(1 for fault in found.faults if fault.what == "event" and fault.reason == "HMAC_MISMATCH")
    return found.events > 0 and failed == found.events
