"""Probe of ``interlock check`` for the database of the audit log."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from interlock.cli.probing.probes import unwritable
from interlock.domain.errors import Refused
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.values import without_password

LEAST_FREE_BYTES = 200_000_000


def audit_store(settings: Settings) -> Iterator[ProbeFinding]:
    """Check the database of the audit log: present or creatable, readable, in WAL mode, with free space."""
    from interlock.audit.store.database import open_reader
    from interlock.audit.store.opening import database_path, is_postgres

    line = partial(ProbeFinding, "audit store")
    if is_postgres(settings):
        yield _audit_server(line, settings)
        return
    try:
        path = database_path(settings)
    except Refused as refused:
        yield line("database", ProbeStatus.FAIL, refused.message, "correct INTERLOCK_AUDIT_URL")
        return
    if problem := unwritable(path.parent):
        yield line("folder", ProbeStatus.FAIL, problem, "make it writable, or set INTERLOCK_AUDIT_URL")
        return
    yield from _room(line, path)
    if not path.exists():
        yield line("database", ProbeStatus.OK, f"none yet; the first start creates {path}")
        return
    if not path.is_file():  # opening a pipe would wait for ever
        yield line("database", ProbeStatus.FAIL, f"{path} is not a file", "move it away, or set INTERLOCK_AUDIT_URL")
        return
    try:
        reader = open_reader(path)
        mode = reader.execute("PRAGMA journal_mode").fetchone()[0]
        reader.close()
    except (sqlite3.Error, OSError) as error:
        yield line(
            "database", ProbeStatus.FAIL, f"{path}: {type(error).__name__}", "restore it from a copy, or move it away"
        )
        return
    if not os.access(path, os.W_OK):
        yield line("database", ProbeStatus.FAIL, f"{path} is not writable", f"chmod u+w {path}")
    elif mode != "wal":
        hint = "it is set at startup; another program has opened the file since"
        yield line("journal mode", ProbeStatus.WARN, f"{mode}, not wal", hint)
    else:
        yield line("database", ProbeStatus.OK, f"{path}, WAL")


def _audit_server(line: Callable[..., ProbeFinding], settings: Settings) -> ProbeFinding:
    from interlock.audit.store.opening import open_reader

    shown = without_password(settings.audit_url)
    try:
        with closing(open_reader(settings)) as reader:
            reader.ping()
    except Refused as refused:
        hint = "start it, or correct INTERLOCK_AUDIT_URL; an answer that cannot be sealed is not released"
        return line("database", ProbeStatus.FAIL, f"{shown}: {refused.message}", refused.metadata.get("hint") or hint)
    return line("database", ProbeStatus.OK, f"{shown} answers")


def _room(line: Callable[..., ProbeFinding], path: Path) -> Iterator[ProbeFinding]:
    there = next(folder for folder in path.absolute().parents if folder.exists())
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        hint = "free some space: an answer that cannot be sealed is not released"
        yield line("disk", ProbeStatus.WARN, f"{free // 1_000_000} MB free on {there}", hint)
