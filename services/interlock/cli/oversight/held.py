"""``interlock oversight list|show|approve|reject|sign-in``: the queue of held responses, through the oversight service."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import typer
from google.protobuf import json_format

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.oversight.v1 import oversight_pb2, oversight_pb2_grpc
from interlock.cli.asking import asked
from interlock.cli.output import Format, Output, print_json, refusals
from interlock.cli.oversight.reviewer_key import approved, private_key
from interlock.domain import approval, held, ids
from interlock.domain.errors import invalid, unavailable
from interlock.oversight.visible import visible
from interlock.runtime.clock import system_clock
from interlock.runtime.pictures import picture
from interlock.runtime.rpc.client import call_service
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from interlock.api.oversight.v1.oversight_pb2_grpc import OversightServiceAsyncStub

WINDOW = typer.Argument(help="Id of the held window: crp_win_ and 32 hex digits.")
KEY = typer.Option(..., "--key", help="The reviewer's private key, from `interlock oversight keygen`.")
SESSION = typer.Option("", "--session", help="Only responses of this session.")
LIMIT = typer.Option(50, "--limit", min=1, max=200, help="Maximum number of responses.")
HASH = typer.Option(
    "", "--response-hash", help="Hash of the response that you read. The command refuses to decide about another one."
)

A = TypeVar("A")
Call = Callable[["OversightServiceAsyncStub", Mapping[str, Any]], Awaitable[A]]
"""A call. Its arguments are the stub and the options of every call: the view and the deadline."""

_CHALLENGE = re.compile(r"interlock-sign-in-v1\n[A-Za-z0-9._@+-]{1,128}\n[A-Za-z0-9_-]{1,128}", re.ASCII)


class HeldState(StrEnum):
    """Filter of the list of held responses."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    RELEASED = "released"
    ALL = "all"


APPROVING = typer.Option(..., "--reason", help=f"Reason, recorded in the chain: {', '.join(held.APPROVAL_REASONS)}.")
REJECTING = typer.Option(..., "--reason", help=f"Reason, recorded in the chain: {', '.join(held.REJECTION_REASONS)}.")
STATE = typer.Option(HeldState.PENDING, "--status", help="Status of the responses to list.")


def list_held(
    key: Path = KEY, status: HeldState = STATE, session: str = SESSION, limit: int = LIMIT, output: Output = Format.TEXT
) -> None:
    """List held responses, the oldest first.

    Queries the oversight service at INTERLOCK_OVERSIGHT_ADDRESS. Exit 0: listed. 2: refused, or no answer.
    """
    every = status is HeldState.ALL
    wanted = audit_pb2.HELD_STATUS_UNSPECIFIED if every else audit_pb2.HeldStatus.Value(f"HELD_STATUS_{status.name}")
    with refusals(output):
        request = oversight_pb2.ListHeldRequest(
            status=wanted,
            session_id=session and ids.check("crp_sess_", session),
            limit=limit,
        )
        page = signed_in(key, lambda stub, options: stub.ListHeld(request, **options))
    if output is Format.JSON:
        print_json({"items": [_item(item) for item in page.items], "more": page.more})
        return
    for item in page.items:
        risk = common_pb2.RiskLevel.Name(item.risk_level).removeprefix("RISK_LEVEL_")
        typer.echo(f"{item.window_id}  {_status(item):<9} {risk:<9} expires {item.expires_at}  {item.session_id}")
    if not page.items:
        typer.echo("nothing is held")
    elif page.more:
        typer.echo(f"there are more; --limit is {limit}")


def show(window: str = WINDOW, key: Path = KEY, output: Output = Format.TEXT) -> None:
    """Show a held response: its text with hidden characters made visible, its claims, evidence, risk and session.

    Exit 0: shown. 2: refused, or no answer.
    """
    with refusals(output):
        request = oversight_pb2.GetHeldRequest(window_id=ids.check("crp_win_", window))
        found = signed_in(key, lambda stub, options: stub.GetHeld(request, **options))
    if output is Format.JSON:
        report = json_format.MessageToDict(found.report, preserving_proto_field_name=True)
        shown = {"item": _item(found.item), "text": found.text, "question": found.question, "report": report}
        kept_by = {"reason": found.kept_reason, "directive": found.kept_directive}
        print_json({**shown, "evidence": dict(found.evidence), "kept_by": kept_by})
    else:
        typer.echo("\n".join(_lines(found)))


def approve(
    window: str = WINDOW,
    key: Path = KEY,
    reason: str = APPROVING,
    response_hash: str = HASH,
    output: Output = Format.TEXT,
) -> None:
    """Approve a held response. Its client can get it once, until the hold expires. Prints the oversight token.

    Exit 0: approved. 2: refused; nothing was decided.
    """
    _decide(window, key, approval.RELEASE, reason=reason, response_hash=response_hash, output=output)


def reject(
    window: str = WINDOW,
    key: Path = KEY,
    reason: str = REJECTING,
    response_hash: str = HASH,
    output: Output = Format.TEXT,
) -> None:
    """Reject a held response. It is deleted and never released.

    Exit 0: rejected. 2: refused; nothing was decided.
    """
    _decide(window, key, approval.REJECT, reason=reason, response_hash=response_hash, output=output)


def sign_in(key: Path = KEY, output: Output = Format.TEXT) -> None:
    """Open a view and print its token, to read the reviewers' page in a browser without scripts.

    The view is read-only, and ends after INTERLOCK_OVERSIGHT_VIEW_S. Exit 0: printed. 2: refused.
    """
    with refusals(output):
        settings = load()
        opened = asked(
            "oversight", settings, lambda c: _opened(oversight_pb2_grpc.OversightServiceStub(c), key, settings)
        )
    if output is Format.JSON:
        print_json({"token": opened.bearer, "expires_at": opened.expires_at})
    else:
        typer.echo(opened.bearer)


def _decide(window: str, key: Path, action: str, *, reason: str, response_hash: str, output: Format) -> None:
    with refusals(output):
        ids.check("crp_win_", window)
        allowed = held.APPROVAL_REASONS if action == approval.RELEASE else held.REJECTION_REASONS
        if reason not in allowed:
            raise invalid("INVALID_REASON", f"--reason: one of {', '.join(allowed)}")
        token = ""

        async def decide(stub: OversightServiceAsyncStub, options: Mapping[str, Any]) -> oversight_pb2.DecideResponse:
            nonlocal token
            wanted = oversight_pb2.GetHeldRequest(window_id=window, state_only=True)
            found = await call_service("oversight", stub.GetHeld(wanted, **options))
            token = _signed(found.item, key, action, response_hash)
            request = oversight_pb2.DecideRequest(window_id=window, token=token, reason=reason)
            return await call_service("oversight", stub.Decide(request, **options))

        item = signed_in(key, decide).item
    if output is Format.JSON:
        print_json({**_item(item), **({"token": token} if action == approval.RELEASE else {})})
    elif action == approval.RELEASE:
        typer.echo(token)
    else:
        typer.echo(f"{window} is rejected, and its answer deleted")


def _signed(item: audit_pb2.HeldItem, key: Path, action: str, response_hash: str) -> str:
    """Return the token of a decision about exactly this held response, valid until the hold expires."""
    if response_hash and response_hash != item.response_hash:
        raise invalid("RESPONSE_HASH_MISMATCH", "that window holds a different response from the one that was read")
    if item.status != audit_pb2.HELD_STATUS_PENDING:
        raise invalid("HELD_NOT_PENDING", f"the response is {_status(item).lower()}: there is nothing to decide")
    scope = {
        "session": item.session_id, "window": item.window_id, "response": item.response_hash, "policy": item.policy_hash,
    }  # fmt: skip
    reviewer, private = private_key(key)
    left_s = int(datetime.fromisoformat(item.expires_at).timestamp()) - system_clock() // 1_000_000
    return approved(reviewer, private, action, scope, life_s=left_s)[1]


def signed_in(key: Path, call: Call[A]) -> A:
    """Sign in as the reviewer of *key*, and return the oversight service's response to *call*."""
    settings: Settings = load()

    async def calling(channel: grpc.aio.Channel) -> A:
        stub = oversight_pb2_grpc.OversightServiceStub(channel)
        opened = await _opened(stub, key, settings)
        view = (("authorization", f"Bearer {opened.bearer}"),)
        return await call(stub, {"metadata": view, "timeout": settings.rpc_timeout_s})

    return asked("oversight", settings, calling)


async def _opened(stub: OversightServiceAsyncStub, key: Path, settings: Settings) -> oversight_pb2.SignInResponse:
    reviewer, private = private_key(key)
    wanted, timeout = oversight_pb2.ChallengeRequest(reviewer_id=reviewer), settings.rpc_timeout_s
    drawn = await call_service("oversight", stub.Challenge(wanted, timeout=timeout))
    if not _CHALLENGE.fullmatch(drawn.challenge):
        raise unavailable("CHALLENGE_INVALID", "the text to sign is not a sign-in challenge", retry_after_ms=0)
    signature = private.sign(drawn.challenge.encode())
    request = oversight_pb2.SignInRequest(reviewer_id=reviewer, challenge=drawn.challenge, signature=signature)
    return await call_service("oversight", stub.SignIn(request, timeout=timeout))


def _lines(found: oversight_pb2.GetHeldResponse) -> list[str]:
    item, report = found.item, found.report
    lines = [
        f"window    {item.window_id}  {_status(item)}",
        f"session   {item.session_id}",
        f"risk      {common_pb2.RiskLevel.Name(item.risk_level).removeprefix('RISK_LEVEL_')}, score {report.composite_score:.3f}",
        f"held      {item.held_at}, expires {item.expires_at}",
        *([f"kept by   {found.kept_directive} ({found.kept_reason})"] if found.kept_reason else []),
        f"response  {item.response_hash}",
        f"policy    {item.policy_hash}",
        "",
        "question:",
        *_indented(found.question or "-"),
        "",
        f"answer, {len(found.text):,} characters:",
        *_indented(found.text or "deleted: rejected, expired, erased or released"),
        "",
        f"claims, {len(report.claims)}:",
    ]
    for claim in report.claims:
        lines += _claim(claim, found)
    counts = f"fabrications {report.fabrication_count}, distortions {report.distortion_count}"
    lines += ["", f"{counts}, contradictions {report.contradiction_count}, omitted facts {len(report.omissions)}"]
    return [*lines, "", picture.text(found.sessions) if found.sessions else "the session cannot be read at present"]


def _claim(claim: dpe_pb2.Claim, found: oversight_pb2.GetHeldResponse) -> list[str]:
    rests = dpe_pb2.Attribution.Name(claim.attribution).removeprefix("ATTRIBUTION_")
    lines = [f"  {claim.claim_id} {rests}, entailment {claim.entailment:.2f}: {visible(claim.text)}"]
    if claim.fact_id:
        lines.append(f"     {visible(claim.fact_id)}: {found.evidence.get(claim.fact_id, 'its text is not available')}")
    lines += [f"     fabricated: {visible(one)}" for one in claim.fabrications]
    lines += [
        f"     {one.type}: source {visible(one.source_value)}, claim {visible(one.claim_value)}"
        for one in claim.distortions
    ]
    return lines


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.split("\n")]


def _status(item: audit_pb2.HeldItem) -> str:
    return audit_pb2.HeldStatus.Name(item.status).removeprefix("HELD_STATUS_")


def _item(item: audit_pb2.HeldItem) -> dict[str, Any]:
    names = ("window_id", "session_id", "held_at", "expires_at", "response_hash", "policy_hash", "reviewer_id",
             "approval_id", "decided_at", "reason")  # fmt: skip
    risk = common_pb2.RiskLevel.Name(item.risk_level).removeprefix("RISK_LEVEL_")
    return {**{name: getattr(item, name) for name in names}, "status": _status(item), "risk_level": risk}
