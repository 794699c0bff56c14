"""Probe of ``interlock check`` for the master key and its versions."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from interlock.cli.probing.probes import refusable
from interlock.domain.errors import Refused
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.model import Settings


def keys(settings: Settings) -> Iterator[ProbeFinding]:
    """Check the master key: present, strong and private. Never create one here."""
    line, path = partial(ProbeFinding, "keys"), settings.state_dir / "master.key"
    if settings.master_keys_file is not None:
        yield from _versions(line, settings, settings.master_keys_file)
        return
    if settings.master_key is None and not path.exists():
        yield line("master key", ProbeStatus.OK, f"none yet; the first start creates {path}")
        return
    yield refusable(line, "master key", lambda: load_keyring(settings), "strong enough")
    if settings.master_key is None and (mode := stat.S_IMODE(path.stat().st_mode) & 0o077):
        # A group that only reads is how a secret is mounted; anything more refuses to start.
        status = ProbeStatus.WARN if mode == stat.S_IRGRP else ProbeStatus.FAIL
        yield line("master key file", status, f"{path} is readable by others", f"chmod 600 {path}")


def _versions(line: Callable[..., ProbeFinding], settings: Settings, path: Path) -> Iterator[ProbeFinding]:
    from interlock.cli.keys.versions_used import versions_used
    from interlock.runtime.keys import keys_file

    def look() -> None:
        keys_file.check_not_rolled_back(keys_file.load(path), settings.state_dir)

    yield refusable(line, "master keys", look, "strong enough, private, not rolled back")
    try:
        missing = sorted((versions_used(settings) or set()) - set(keys_file.load(path).by_version))
    except Refused as refused:
        yield line("versions", ProbeStatus.SKIP, refused.message, "correct the key file and the audit log first")
        return
    if missing:
        hint = "put them back: data that they sealed cannot be verified or read without them"
        yield line("versions", ProbeStatus.WARN, f"audit data need version {', '.join(map(str, missing))}", hint)
    else:
        yield line("versions", ProbeStatus.OK, "all versions that audit data need")
