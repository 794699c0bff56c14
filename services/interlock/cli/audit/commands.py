"""``interlock audit``: check and export a session's audit trail, directly from the database in the settings.

It only reads, so it works with or without a running service.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import typer

from interlock.audit.export.export import printable
from interlock.audit.sealing.verify import examine
from interlock.audit.store.log import StoreFailed
from interlock.audit.store.opening import open_reader, place
from interlock.audit.tree.walk import TreeReader, walk_tree, walked
from interlock.cli.audit import stream
from interlock.cli.audit.emergencies import emergency_line, recorded_emergencies, with_forged
from interlock.cli.audit.erase import erase, migrate
from interlock.cli.audit.export import export
from interlock.cli.audit.offline import ANCHOR, OFFLINE, PUBLIC_KEY, fsck, verify_offline, with_log
from interlock.cli.audit.proofs import acknowledge_truncation, bundle, checkpoint, prove
from interlock.cli.audit.tree import as_json, print_tree, tree_as_json
from interlock.cli.output import NEGATIVE, Format, Output, print_json, print_refusal
from interlock.domain import ids
from interlock.domain.chain.chain import Integrity, Verification
from interlock.domain.errors import Refused, not_found, unavailable
from interlock.runtime.keys.derivation import Keyring, load_keyring
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

app = typer.Typer(no_args_is_help=True, help="Verify and export the audit chain of a session.")

SESSION = typer.Argument(help="Session id: crp_sess_ and 32 hex digits, as in CRP-Context-Session-Id.")
OPTIONAL_SESSION = typer.Argument("", help="Session id: crp_sess_ and 32 hex digits; not with --offline.")
TREE = typer.Option(
    False, "--tree", help="Treat the session as the root of an agent tree and check all sessions below it."
)
for command in (checkpoint, prove, bundle, fsck, export, erase, migrate):
    app.command()(command)
app.add_typer(stream.app, name="stream")
app.command(name="acknowledge-truncation")(acknowledge_truncation)


@app.command()
def verify(  # noqa: PLR0917 - each is an option of the command
    session_id: str = OPTIONAL_SESSION,
    tree: bool = TREE,
    offline: Path | None = OFFLINE,
    anchor: Path | None = ANCHOR,
    public_key: Path | None = PUBLIC_KEY,
    output: Output = Format.TEXT,
) -> None:
    """Check every HMAC, hash, number and link of a session's trail, from the stored bytes, and the log that it is part of.

    Where `fsck` finds a fault that concerns the session, or one of the log that concerns every session, so does this.

    With --tree: also check all child sessions recursively, and compare each parent's records of its children with the
    children's own trails (SPEC-012 §8.2). The first break is named.

    With --offline instead of a session: check the whole log in a bundle with the log's public key alone (docs/audit.md).

    Exit 0: VALID; UNVERIFIED if there are not two windows that could be linked (every record verifies); or TRUNCATED if a signed mark records
    an erasure or retention. 1: BROKEN or PARTIAL. 2: no such session, or no verdict is possible.
    """
    if offline is not None:
        verify_offline(offline, anchor, public_key, output)
    if tree:
        _verify_tree(session_id, output)
        return
    with _refusals(as_json=output is Format.JSON):
        settings = load()
        with closing(open_reader(settings)) as reader:
            keyring = _keyring(settings)
            stored = reader.chain(ids.check("crp_sess_", session_id))
            if not stored.events and not stored.windows and not reader.positions(session_id):
                raise _unknown(settings)
            found = examine(stored, session_id, keyring)
            found = with_log(found, reader, session_id, settings)
            recorded = recorded_emergencies(session_id, stored.events, settings, keyring)
            found = with_forged(found, recorded)
    if output is Format.JSON:
        more = {"recorded_emergencies": recorded} if recorded else {}
        print_json({"session_id": session_id, **as_json(found), **more})
    else:
        typer.echo("\n".join([_as_text(session_id, found), *map(emergency_line, recorded)]))
    raise typer.Exit(NEGATIVE if found.faults else 0)


def _verify_tree(root_id: str, output: Format) -> None:
    with _refusals(as_json=output is Format.JSON):
        settings = load()
        with closing(open_reader(settings)) as log:
            found = walked(walk_tree(TreeReader(log, _keyring(settings)), ids.check("crp_sess_", root_id)))
    if output is Format.JSON:
        print_json(tree_as_json(found))
    else:
        print_tree(found)
    raise typer.Exit(0 if found.integrity in {Integrity.VALID, Integrity.UNVERIFIED, Integrity.TRUNCATED} else NEGATIVE)


def _unknown(settings: Settings) -> Refused:
    return not_found("SESSION_NOT_FOUND", f"{place(settings)} has no records of that session")


def _keyring(settings: Settings) -> Keyring:
    """Return the keys. Never create a master key here: a new key could not have sealed anything."""
    own = (settings.state_dir / "master.key").is_file()
    if settings.master_key is None and settings.master_keys_file is None and not own:
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
            f"  {mark.event_type} by event {mark.sequence} at {printable(mark.timestamp)}: {printable(mark.data_json)}"
            for mark in found.marks
        ),
        *(
            f"  {fault.what} {fault.index}: {fault.reason}  {printable(fault.window_id)}".rstrip()
            for fault in found.faults
        ),
    ]
    if found.integrity is Integrity.UNVERIFIED:
        lines.append(
            "  Nothing is wrong: every record verifies. VALID is said of windows that are linked, and there are not two."
        )
    if _every_event_fails(found):
        lines.append("  Every event fails: is this the master key that sealed them?")
    return "\n".join(lines)


def _every_event_fails(found: Verification) -> bool:
    failed = sum(1 for fault in found.faults if fault.what == "event" and fault.reason == "HMAC_MISMATCH")
    return found.events > 0 and failed == found.events
