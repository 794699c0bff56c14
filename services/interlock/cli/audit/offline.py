"""``interlock audit verify --offline`` and ``interlock audit fsck``: check the whole log from its bytes, without a secret key."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import typer

from interlock.audit.export.export import printable
from interlock.audit.merkle.checkpoint_key import PUBLIC, load_checkpoint_key
from interlock.audit.merkle.examination import examine_bundle, examine_log
from interlock.audit.merkle.folder import UnusableError
from interlock.audit.merkle.sessions import SESSION_KEY, keyless
from interlock.audit.sealing.verify import key_of
from interlock.audit.store.log import LogReader
from interlock.audit.store.opening import open_reader
from interlock.cli.output import NEGATIVE, Format, Output, print_json, refusals
from interlock.domain.chain.chain import Fault, Verification
from interlock.domain.errors import Refused, invalid
from interlock.domain.merkle.bundle import Examined, Finding, as_json
from interlock.domain.merkle.note import MalformedNoteError, VerifierKey, verifier_key
from interlock.runtime.keys.derivation import OWN_KEY, load_keyring
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

LONGEST_KEY = 4096
SHOWN = 50

OFFLINE = typer.Option(
    None,
    "--offline",
    help="Folder of a bundle from `interlock audit bundle`. Checks the whole log without a server or a master key.",
)
ANCHOR = typer.Option(None, "--anchor", help="Folder to which the checkpoints of the log were published.")
PUBLIC_KEY = typer.Option(None, "--public-key", help="File with the log's verifier key, name+hash+key.")


def verify_offline(bundle: Path, anchor: Path | None, public_key: Path | None, output: Format) -> None:
    """Check a bundle and end the command. Exit 0: no problem. 1: a problem. 2: no verdict is possible."""
    with refusals(output):
        if public_key is None:
            raise invalid("PUBLIC_KEY_NEEDED", "checking a log needs its public key", hint="give --public-key FILE")
        key = key_in(public_key)
        try:
            found = examine_bundle(bundle, key, anchor)
        except (OSError, UnusableError) as error:
            raise _unusable(error) from None
    _end(found, key, output, anchor=anchor)


def fsck(anchor: Path | None = ANCHOR, output: Output = Format.TEXT) -> None:
    """Derive the Merkle log again from the bytes in the database and compare it with every checkpoint.

    Reads the database and the anchor in the settings, with or without a running service. Exit 0: everything matches. 1: a
    mismatch; its position is named. 2: no verdict is possible.
    """
    with refusals(output):
        settings = load()
        anchor = anchor or settings.audit_anchor
        key = own_verifier(settings)
        with closing(open_reader(settings)) as log:
            try:
                found = examine_log(log, key, anchor, key_of=own_keys(settings))
            except (OSError, UnusableError) as error:
                raise _unusable(error) from None
    _end(found, key, output, anchor=anchor)


def with_log(found: Verification, log: LogReader, session_id: str, settings: Settings) -> Verification:
    """Return the verdict on a session with what the log over all sessions says against it: one verdict by any command.

    That is what ``fsck`` finds at one of the session's own entries, and what it finds of no entry's session: a checkpoint that
    does not hold, an entry that is gone. A log that was never signed has no key and says nothing.
    """
    signed = bool(log.checkpoints()) or settings.audit_anchor is not None
    if not signed:
        return found
    try:
        whole = examine_log(log, own_verifier(settings), settings.audit_anchor, key_of=own_keys(settings))
    except (OSError, UnusableError) as error:
        raise _unusable(error) from None
    mine = log.positions(session_id)
    owned = set(mine.values())
    size = log.log_size()
    told = {mine.get(fault.index, -1) for fault in found.faults if fault.what == "event"}
    more = [
        Fault("log", one.index, one.reason)
        for one in whole.findings
        if one.index not in told and _concerns(one, owned, log, size)
    ]
    return replace(found, faults=(*found.faults, *more))


def _concerns(finding: Finding, owned: AbstractSet[int], log: LogReader, size: int) -> bool:
    """Return whether a finding is at an entry of the session, or at none of any session that is still there."""
    if finding.what in {"session", "window", "report"}:
        return False  # of one session, and the chain of this one has its own
    if finding.what != "entry" or finding.index in owned or finding.index >= size:
        return True
    here = log.entries(finding.index, finding.index + 1)
    return not here or here[0].event is None


def own_keys(settings: Settings) -> SESSION_KEY:
    """Return the session keys of the master key in the settings; no key where there is none. Never create one here."""
    given = settings.master_key is not None or settings.master_keys_file is not None
    if not given and not (settings.state_dir / OWN_KEY).is_file():
        return keyless
    return partial(key_of, load_keyring(settings))


def own_verifier(settings: Settings) -> VerifierKey:
    """Return the public half of the checkpoint key in the settings. Never create a key here."""
    own = settings.state_dir / f"checkpoint.key{PUBLIC}"
    if settings.checkpoint_key_file is None and own.is_file():
        return key_in(own)
    if settings.checkpoint_key_file is None:
        raise invalid(
            "CHECKPOINT_KEY_MISSING", f"there is no checkpoint key in {settings.state_dir}",
            hint="set INTERLOCK_STATE_DIR or INTERLOCK_CHECKPOINT_KEY_FILE to the value of the audit service",
        )  # fmt: skip
    return load_checkpoint_key(settings).verifier()


def key_in(path: Path) -> VerifierKey:
    """Return the verifier key in a file. Refused with PUBLIC_KEY_UNREADABLE."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST_KEY).decode("ascii")
        return verifier_key(text)
    except (OSError, UnicodeDecodeError, MalformedNoteError) as error:
        why = str(error) if isinstance(error, MalformedNoteError) else type(error).__name__
        raise invalid("PUBLIC_KEY_UNREADABLE", f"{path}: {why}") from None


def _unusable(error: OSError | UnusableError) -> Refused:
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return invalid("BUNDLE_UNUSABLE", printable(text), hint="create it with `interlock audit bundle --out DIR`")


def _end(found: Examined, key: VerifierKey, output: Format, *, anchor: Path | None) -> None:
    if output is Format.JSON:
        print_json({"log": key.name, **as_json(found)})
    else:
        typer.echo(_as_text(found, key, anchored=anchor is not None))
    raise typer.Exit(NEGATIVE if found.found else 0)


def _as_text(found: Examined, key: VerifierKey, *, anchored: bool) -> str:
    lines = [
        f"{found.verdict}  {key.name}",
        f"  {found.size} entries, {found.sessions} sessions, {found.windows} sealed windows",
        f"  root {found.root.hex()}",
        f"  signed      [0, {found.signed})" + (f"  at {_time(found.signed_at)}" if found.signed_at else ""),
    ]
    if anchored:
        lines.append(f"  anchored    [0, {found.anchored})")
        lines.append(f"  unanchored  [{found.anchored}, {found.size})" + _word(found.size - found.anchored))
    else:
        lines.append(
            f"  unanchored  [0, {found.size})  no anchor was given: that the end is not missing is the log's own word"
        )
    lines += [f"  truncated   [{first}, {end})  by a signed mark of retention" for first, end in found.truncated]
    if found.recorded_emergencies:
        lines.append(
            f"  recorded    {found.recorded_emergencies} emergency actions while their kernel could not be reached"
        )
    lines += [f"  erased      the contents of {printable(session)}" for session in found.erased]
    lines += [
        f"  lost        [{loss.kept}, {loss.anchored_size}) of generation {loss.generation - 1}, acknowledged by"
        f" {printable(loss.reviewer_id)} at entry {loss.position} ({printable(loss.cause)})"
        for loss in found.losses
    ]
    lines += [
        f"  {one.what} {one.index}: {one.reason}" + (f"  {printable(one.detail)}" if one.detail else "")
        for one in found.findings[:SHOWN]
    ]
    more = found.found - min(len(found.findings), SHOWN)
    return "\n".join([*lines, *([f"  and {more} more"] if more else [])])


def _word(entries: int) -> str:
    return f"  {entries} entries that nothing outside the log vouches for" if entries else ""


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(seconds)
