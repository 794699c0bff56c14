"""``interlock audit checkpoint``, ``prove``, ``bundle`` and ``acknowledge-truncation``: the Merkle log and its proofs.

No response of a service is trusted: checkpoints are verified with the public key, and proofs are verified before printing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import typer

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.audit.export.export import printable
from interlock.audit.merkle.bundles import BundleManifest, LocalSource, LogSource, Page, export
from interlock.audit.merkle.checkpoint_key import holds
from interlock.audit.merkle.folder import UnusableError
from interlock.audit.sealing.reports import open_report
from interlock.audit.store.opening import open_reader
from interlock.cli.asking import asked
from interlock.cli.audit.offline import PUBLIC_KEY, key_in, own_verifier
from interlock.cli.output import LARGEST, Format, Output, print_json, refusals
from interlock.domain import approval, ids
from interlock.domain.errors import Refused, invalid, unavailable
from interlock.domain.merkle.entry import decode_entry
from interlock.domain.merkle.note import (
    MalformedNoteError,
    VerifiedCheckpoint,
    VerifierKey,
    checkpoint_in,
    open_note,
    verifier_key,
)
from interlock.domain.merkle.tiles import parse_generation
from interlock.domain.merkle.tree import leaf_hash, verify_inclusion
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.places import address_to_ask
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.mutual import channel_to

if TYPE_CHECKING:
    from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub

SESSION = typer.Option("", "--session", help="Session of the event.")
SEQUENCE = typer.Option(0, "--sequence", min=0, max=LARGEST, help="Sequence of the event in its session.")
POSITION = typer.Option(
    -1, "--position", help="Position of the entry in the log, from 0; instead of session and sequence."
)
OUT = typer.Option(..., "--out", help="Folder to write to. An interrupted export resumes where it stopped.")
REPORTS = typer.Option(False, "--reports", help="Include the reports, in plain text; they quote users and models.")
SERVICE = typer.Option(
    False, "--service", help="Query the running service at INTERLOCK_AUDIT_ADDRESS instead of the database."
)
APPROVAL = typer.Option(
    ..., "--approval", help="A reviewer's approval of the action acknowledge-truncation for that size."
)
LOST = typer.Option(..., "--size", min=1, max=LARGEST, help="The anchored size, as in the refusal.")

A = TypeVar("A", bound=Any)


def checkpoint(public_key: Path | None = PUBLIC_KEY, output: Output = Format.TEXT) -> None:
    """Print the latest checkpoint of the running service, as it was signed.

    Its signature is checked with --public-key. Without it the service's own key is used, which only shows that the two fit
    together. Exit 0: it is valid. 2: it is not, there is none, or the service does not answer.
    """
    with refusals(output):
        answer, opened = _checkpoint(load(), key_in(public_key) if public_key else None)
    if output is Format.JSON:
        signed = {"size": opened.checkpoint.size, "root": opened.checkpoint.root.hex(), "signed_at": opened.signed_at}
        print_json({**signed, "log_size": answer.log_size, "verifier_key": answer.verifier_key, "note": answer.note})
    else:
        typer.echo(answer.note, nl=False)


def prove(
    session: str = SESSION,
    sequence: int = SEQUENCE,
    position: int = POSITION,
    public_key: Path | None = PUBLIC_KEY,
    output: Output = Format.TEXT,
) -> None:
    """Get a proof that an event is in the log of the latest checkpoint, verify it, and print it.

    Exit 0: proved. 2: there is no such event, the service does not answer, or the proof is invalid.
    """
    with refusals(output):
        if bool(session) == (position >= 0):
            raise invalid("ONE_NAME_NEEDED", "name the entry by --session and --sequence, or by --position")
        settings = load()
        request = audit_pb2.ProveInclusionRequest(position=max(position, 0), sequence=sequence)
        if session:
            request.session_id = ids.check("crp_sess_", session)
        answer, opened = _checkpoint(settings, key_in(public_key) if public_key else None)
        request.size = opened.checkpoint.size
        proof = _call(settings, lambda stub: stub.ProveInclusion(request, timeout=settings.rpc_timeout_s))
        leaf = _require_proved(proof, opened)
    if output is Format.JSON:
        print_json(_proof_as_json(proof, leaf, answer.note))
    else:
        typer.echo(_proof_as_text(proof, leaf, answer.note))


def bundle(out: Path = OUT, reports: bool = REPORTS, service: bool = SERVICE, output: Output = Format.TEXT) -> None:
    """Write the whole log to a folder for an auditor: entries, hashes, checkpoints. It holds no key.

    Without --service it reads the database in the settings, with or without a running service. Exit 0: written. 2: refused.
    """
    with refusals(output):
        settings = load()
        try:
            manifest = asyncio.run(_exported(settings, out)) if service else _from_database(settings, out, reports)
        except (OSError, UnusableError) as error:
            why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise unavailable("BUNDLE_NOT_WRITTEN", printable(why), retry_after_ms=0) from None
    if output is Format.JSON:
        print_json({"out": str(out), "entries": manifest.size, "reports": manifest.reports})
    else:
        typer.echo(f"{out}: {manifest.size} entries" + (" with reports" if manifest.reports else ""))


def acknowledge_truncation(token: str = APPROVAL, size: int = LOST, output: Output = Format.TEXT) -> None:
    """Accept, with a reviewer's approval, the loss of anchored entries. The log continues after a signed TRUNCATED entry.

    The policy service verifies the approval, which can be used once. Exit 0: the log accepts writes again. 2: refused.
    """
    with refusals(output):
        settings = load()
        asking = policy_pb2.VerifyApprovalRequest(token=token, action=approval.ACKNOWLEDGE, scope={"size": str(size)})
        verified = asked(
            "policy",
            settings,
            lambda channel: policy_pb2_grpc.PolicyServiceStub(channel).VerifyApproval(
                asking, timeout=settings.rpc_timeout_s
            ),
        )
        request = audit_pb2.AcknowledgeTruncationRequest(
            approval_id=verified.approval_id, reviewer_id=verified.reviewer_id, anchored_size=size
        )
        answer = _call(settings, lambda stub: stub.AcknowledgeTruncation(request, timeout=settings.rpc_timeout_s))
    if output is Format.JSON:
        print_json({"size": answer.size, "reviewer_id": verified.reviewer_id, "approval_id": verified.approval_id})
    else:
        typer.echo(f"the log continues after entry {answer.size}, which names the reviewer who accepted the loss")


def _from_database(settings: Settings, out: Path, reports: bool) -> BundleManifest:
    opened = partial(open_report, keyring=load_keyring(settings)) if reports else None
    with closing(open_reader(settings)) as log:
        return asyncio.run(export(LocalSource(log, str(own_verifier(settings)), opened), out, reports=reports))


async def _exported(settings: Settings, out: Path) -> BundleManifest:
    options = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", settings.max_message_bytes))
    async with channel_to("audit", settings, address_to_ask(settings, "audit"), options) as channel:
        source: LogSource = ServiceSource(audit_pb2_grpc.AuditServiceStub(channel), settings.rpc_timeout_s)
        return await export(source, out, reports=False)


class ServiceSource:
    """The log of a running service."""

    def __init__(self, stub: AuditServiceAsyncStub, timeout_s: float) -> None:
        self._stub, self._timeout_s = stub, timeout_s

    async def checkpoints(self) -> tuple[str, Sequence[str]]:
        """Return the verifier key's text and the latest note. Only the database and the anchor have the history."""
        request = audit_pb2.GetCheckpointRequest()
        answer = await call_service("audit", self._stub.GetCheckpoint(request, timeout=self._timeout_s))
        return answer.verifier_key, [answer.note]

    async def pages(self, start: int) -> AsyncIterator[Page]:
        """Yield the entries from *start* up to the latest checkpoint."""
        request = audit_pb2.GetCheckpointRequest()
        end = (await call_service("audit", self._stub.GetCheckpoint(request, timeout=self._timeout_s))).size
        try:
            async for one in self._stub.ListEntries(audit_pb2.ListEntriesRequest(start=start, end=end)):
                yield [(one.entry, one.leaf_hash)]
        except grpc.aio.AioRpcError as error:
            raise unavailable("AUDIT_UNAVAILABLE", f"the stream broke: {error.code().name}; run it again") from None

    def windows(self, size: int) -> None:
        """Return ``None``: rows of windows come from the database."""
        del size

    async def report(self, window_id: str) -> bytes | None:
        """Return ``None``: reports come from the database and need the master key."""
        del window_id
        return None


def _checkpoint(
    settings: Settings, key: VerifierKey | None
) -> tuple[audit_pb2.GetCheckpointResponse, VerifiedCheckpoint]:
    request = audit_pb2.GetCheckpointRequest()
    answer = _call(settings, lambda stub: stub.GetCheckpoint(request, timeout=settings.rpc_timeout_s))
    try:
        known = key or verifier_key(answer.verifier_key)
        origin = checkpoint_in(answer.note).origin
        mine = known.named(origin) if parse_generation(known.name, origin) else known
        return answer, open_note(answer.note, mine, holds)
    except MalformedNoteError as error:
        raise _not_proved("CHECKPOINT_INVALID", str(error)) from None


def _call(settings: Settings, call: Callable[[AuditServiceAsyncStub], Awaitable[A]]) -> A:
    return asked("audit", settings, lambda channel: call(audit_pb2_grpc.AuditServiceStub(channel)))


def _require_proved(proof: audit_pb2.ProveInclusionResponse, opened: VerifiedCheckpoint) -> bytes:
    """Return the leaf hash of the proved entry, after checking that it leads to the signed root."""
    leaf, signed = leaf_hash(proof.entry), opened.checkpoint
    if not proof.entry:
        raise _not_proved("ENTRY_TRUNCATED", "retention removed the bytes of that entry")
    if proof.size != signed.size or not verify_inclusion(leaf, proof.position, signed.size, proof.hashes, signed.root):
        raise _not_proved("PROOF_INVALID", "the proof of the service does not lead to the signed root")
    return leaf


def _not_proved(reason: str, message: str) -> Refused:
    return unavailable(reason, message, retry_after_ms=0)


def _proof_as_json(proof: audit_pb2.ProveInclusionResponse, leaf: bytes, note: str) -> dict[str, Any]:
    return {
        "position": proof.position,
        "size": proof.size,
        "entry": proof.entry.decode("utf-8", "replace"),
        "leaf_hash": leaf.hex(),
        "hashes": [one.hex() for one in proof.hashes],
        "root": proof.root.hex(),
        "checkpoint": note,
    }


def _proof_as_text(proof: audit_pb2.ProveInclusionResponse, leaf: bytes, note: str) -> str:
    event = decode_entry(proof.entry)
    named = f"{printable(event.event_type)} {printable(event.session_id)} #{event.sequence}"
    return "\n".join(
        [
            f"PROVED  entry {proof.position} of {proof.size}: {named}",
            f"  entry  {printable(proof.entry.decode('utf-8', 'replace'))}",
            f"  leaf   {leaf.hex()}",
            *(f"  with   {one.hex()}" for one in proof.hashes),
            f"  root   {proof.root.hex()}",
            "",
            note.rstrip("\n"),
        ]
    )
