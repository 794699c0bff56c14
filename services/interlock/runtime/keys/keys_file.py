"""The file of master keys by version: reading, atomic writing, and protection against a rollback (SPEC-007 §6, TOK-4).

``keys:`` maps a version to its key in hex, or to ``key`` and ``not_before``. ``minimum`` is the lowest version whose tokens are
still accepted. Audit data remain readable as long as the version of their keys is in the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from interlock.domain.errors import Refused, invalid, unavailable
from interlock.runtime.clock import iso8601, system_clock
from interlock.runtime.keys.masters import Masters, decoded
from interlock.runtime.settings.rereading import Reread, read_content
from interlock.runtime.settings.strict_yaml import parse_yaml

MOST_VERSIONS = 1000
SEEN = "master.keys.seen"
_FIELDS = {"key", "not_before"}


def watched(path: Path, state_dir: Path, *, first: bytes | None) -> Reread[Masters]:
    """Return the keys in *path*, reloaded when it changes. *first* is version 1 where the file has none."""

    def read(contents: Sequence[bytes]) -> Masters:
        masters = with_first(parsed(contents[0], path), first, path)
        check_not_rolled_back(masters, state_dir)
        _remember(masters, state_dir)
        return masters

    return Reread([path], read, setting="master_keys_file", secret=[path])


def load(path: Path) -> Masters:
    """Return the current keys of a file."""
    return parsed(read_content(path, secret=True), path)


def parsed(content: bytes, path: Path) -> Masters:
    """Return the keys in the content of a file. Refused with MASTER_KEYS_INVALID or MASTER_KEY_WEAK, naming the version."""
    document = parse_yaml(content, path)
    if (
        not isinstance(document, dict)
        or set(document) - {"keys", "minimum"}
        or not isinstance(document.get("keys"), dict)
    ):
        raise _bad(path, "it must have keys, and may have minimum")
    listed, minimum = document["keys"], document.get("minimum", 1)
    if not 1 <= len(listed) <= MOST_VERSIONS:
        raise _bad(path, f"it must hold from 1 to {MOST_VERSIONS} keys")
    read = {_version(path, version): _entry(path, version, entry) for version, entry in listed.items()}
    masters = Masters(
        {version: key for version, (key, _) in read.items()},
        {version: begins for version, (_, begins) in read.items() if begins},
        minimum if type(minimum) is int else 0,
    )
    _check(masters, path)
    return masters


def _check(masters: Masters, path: Path) -> None:
    if len(set(masters.by_version.values())) < len(masters.by_version):
        raise _bad(path, "two versions have the same key")
    now = system_clock()
    signing = [version for version in masters.by_version if masters.not_before.get(version, 0) <= now]
    if not signing:
        raise _bad(path, "not_before of every version is in the future, so none can sign")
    if not 1 <= masters.minimum <= max(signing):
        raise _bad(path, "minimum must be from 1 to the version that signs now")


def _version(path: Path, version: Any) -> int:
    if type(version) is not int or not 1 <= version < 2**31:
        raise _bad(path, "a version must be a whole number from 1")
    return version


def _entry(path: Path, version: int, entry: Any) -> tuple[bytes, int]:
    fields = entry if isinstance(entry, dict) else {"key": entry}
    if not isinstance(fields.get("key"), str) or set(fields) - _FIELDS:
        raise _bad(path, f"version {version} must be hex digits in quotes, or key and not_before")
    try:
        return decoded(fields["key"]), _micros(fields.get("not_before"))
    except Refused as refused:
        raise unavailable(refused.reason, f"{path}, version {version}: {refused.message}", retry_after_ms=0) from None
    except ValueError:
        raise _bad(path, f"not_before of version {version} must be a time such as 2026-05-25T10:00:00Z") from None


def _micros(value: Any) -> int:
    """Return a time of the document, microseconds; 0 without one. YAML may have parsed it already."""
    if value is None:
        return 0
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)


def with_first(masters: Masters, first: bytes | None, path: Path) -> Masters:
    """Return *masters* with the earlier single key as version 1. Refused when the file has another key as version 1."""
    if first is None or masters.by_version.get(1) == first:
        return masters
    if 1 in masters.by_version:
        raise _bad(path, "its version 1 is not the key of master_key; remove one of the two")
    return Masters({1: first, **masters.by_version}, masters.not_before, masters.minimum)


def check_not_rolled_back(masters: Masters, state_dir: Path) -> None:
    """Refuse keys that are older than the ones this deployment has used (reliability.md A-46)."""
    highest, minimum = _seen(state_dir)
    if max(masters.by_version) < highest:
        raise _rolled_back(
            f"version {highest} was used here before, and the highest given is {max(masters.by_version)}"
        )
    if masters.minimum < minimum:
        raise _rolled_back(f"tokens below version {minimum} were refused here before, and minimum is {masters.minimum}")


def _remember(masters: Masters, state_dir: Path) -> None:
    seen = (max(masters.by_version), masters.minimum)
    if seen != _seen(state_dir):
        try:
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(state_dir / SEEN, json.dumps({"highest": seen[0], "minimum": seen[1]}).encode())
        except OSError as error:
            raise unavailable(
                "MASTER_KEYS_UNRECORDED", f"{state_dir / SEEN}: {type(error).__name__}", retry_after_ms=0
            ) from None


def _seen(state_dir: Path) -> tuple[int, int]:
    path = state_dir / SEEN
    if not path.exists():
        return 0, 0
    try:
        found = json.loads(read_content(path))
        return int(found["highest"]), int(found["minimum"])
    except (ValueError, KeyError, TypeError):
        raise unavailable(
            "MASTER_KEYS_UNRECORDED", f"{path} does not have the form that Interlock writes", retry_after_ms=0
        ) from None


def change(path: Path, edit: Callable[[Masters], Masters]) -> Masters:
    """Apply *edit* to the keys in *path*, atomically and one change at a time, and return the new keys."""
    while True:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                continue  # another change replaced the file while this one waited
            made = edit(load(path))
            _check(made, path)
            write(path, as_yaml(made))
            return made


def create(path: Path, masters: Masters) -> None:
    """Write a new file of keys. Refused with KEYS_FILE_EXISTS if the file exists."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(as_yaml(masters))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise invalid("KEYS_FILE_EXISTS", f"{path} already exists; rotate its keys") from None


def as_yaml(masters: Masters) -> bytes:
    """Return the content of a file of keys."""
    keys: Mapping[int, Any] = {
        version: {"key": key.hex(), "not_before": iso8601(masters.not_before[version])}
        if version in masters.not_before
        else key.hex()
        for version, key in sorted(masters.by_version.items())
    }
    document = {"keys": keys, **({"minimum": masters.minimum} if masters.minimum > 1 else {})}
    return yaml.dump(document, Dumper=_Quoting, sort_keys=False).encode()


class _Quoting(yaml.SafeDumper):
    """Quotes every text: bare hex digits could be read as a number."""


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def write(path: Path, content: bytes) -> None:
    """Replace the content of *path*, durably and readable by the owner only."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def _bad(path: Path, why: str) -> Refused:
    return unavailable("MASTER_KEYS_INVALID", f"{path}: {why}", retry_after_ms=0)


def _rolled_back(why: str) -> Refused:
    return unavailable(
        "MASTER_KEYS_ROLLED_BACK",
        f"the master keys are older than those used before: {why}",
        retry_after_ms=0,
        hint="restore the newest file of keys; see docs/security-operations.md",
    )
