"""``interlock oversight stuck list|show|decide``: compensations that wait for a person, through the oversight service."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from google.protobuf import json_format

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.cli.output import NEGATIVE, OK, Format, Output, plain, print_json, refusals, table
from interlock.cli.oversight.held import signed_in
from interlock.cli.oversight.reviewer_key import approved, private_key
from interlock.domain import approval, ids
from interlock.domain.errors import invalid
from interlock.domain.kernel import stuck
from interlock.runtime.rpc.client import call_service

if TYPE_CHECKING:
    from interlock.api.oversight.v1.oversight_pb2_grpc import OversightServiceAsyncStub

app = typer.Typer(no_args_is_help=True, help="Decide about compensations of sagas that are stuck.")

LIFE_S = 900
"""How long a decision that was signed can be handed in."""
PAGE = 200

KERNEL = typer.Argument(help="Id of the kernel: crp_sess_ and 32 hex digits, as `list` shows it.")
STEP = typer.Argument(help="Key of the step, as `list` shows it.")
KEY = typer.Option(..., "--key", help="The reviewer's private key, from `interlock oversight keygen`.")
OUTCOME = typer.Option(
    ..., "--outcome", help="done: a person made up for it. retry: try it again. leave: it stays stuck."
)
REASON = typer.Option(
    ..., "--reason", help="; ".join(f"{outcome}: {', '.join(words)}" for outcome, words in stuck.REASONS.items())
)
RECORD = typer.Option(
    0, "--record", min=0, help="The record that you read, as `show` tells it. Refused where something happened since."
)


@app.command(name="list")
def list_stuck(key: Path = KEY, output: Output = Format.TEXT) -> None:
    """List the compensations of all kernels that wait for a person, the oldest first.

    Exit 0: nothing waits. 1: something does. 2: refused, or no answer.
    """
    with refusals(output):
        found = signed_in(key, _all).items
    if output is Format.JSON:
        print_json([_told(one) for one in found])
    else:
        rows = [("kernel", "name", "caller", "step", "of", "by", "attempts", "since", "left by"), *map(_row, found)]
        _print([*table(rows)] if found else ["nothing waits for a person"])
    raise typer.Exit(NEGATIVE if found else OK)


@app.command()
def show(kernel: str = KERNEL, step: str = STEP, key: Path = KEY, output: Output = Format.TEXT) -> None:
    """Show one: its step, what would make up for it, and the kernel's budgets. Exit 0: shown. 2: refused, or no answer."""
    with refusals(output):
        request = oversight_pb2.GetStuckRequest(kernel_id=ids.check("crp_sess_", kernel), execution=step)
        found = signed_in(key, lambda stub, options: stub.GetStuck(request, **options))
    if output is Format.JSON:
        print_json(_told(found))
    else:
        _print(_lines(found))


@app.command()
def decide(  # noqa: PLR0917 - typer's options
    kernel: str = KERNEL,
    step: str = STEP,
    key: Path = KEY,
    outcome: str = OUTCOME,
    reason: str = REASON,
    record: int = RECORD,
    output: Output = Format.TEXT,
) -> None:
    """Sign a decision and hand it in; it is sealed in the kernel's chain with your name and the reason.

    Exit 0: decided. 1: rejected, its effects would break an invariant. 2: refused; nothing was decided.
    """
    with refusals(output):
        stuck.require_reason(outcome, reason)
        ids.check("crp_sess_", kernel)

        async def hand_in(
            stub: OversightServiceAsyncStub, options: Mapping[str, Any]
        ) -> oversight_pb2.DecideStuckResponse:
            wanted = oversight_pb2.GetStuckRequest(kernel_id=kernel, execution=step)
            found = await call_service("oversight", stub.GetStuck(wanted, **options))
            token = _signed(found.compensation, kernel, key, outcome, record)
            request = oversight_pb2.DecideStuckRequest(kernel_id=kernel, execution=step, token=token, reason=reason)
            return await call_service("oversight", stub.DecideStuck(request, **options))

        verdict = signed_in(key, hand_in).verdict
    if output is Format.JSON:
        print_json(_told(verdict))
    else:
        failed = [f"  {one.words}" for one in verdict.checks if not one.passed and not one.monitoring]
        _print([f"decided: {outcome}" if verdict.approved else "rejected", *failed])
    raise typer.Exit(OK if verdict.approved else NEGATIVE)


def _signed(one: kernel_pb2.Compensation, kernel: str, key: Path, outcome: str, record: int) -> str:
    """Return the token of a decision about exactly this compensation, as it was read."""
    if not one.stuck:
        raise invalid("KERNEL_COMPENSATION_NOT_STUCK", "it is tried again: there is nothing to decide now")
    reviewer, private = private_key(key)
    scope = {"kernel": kernel, "step": one.execution, "record": str(record or one.fence), "outcome": outcome}
    return approved(reviewer, private, approval.COMPENSATE, scope, life_s=LIFE_S)[1]


async def _all(stub: OversightServiceAsyncStub, options: Mapping[str, Any]) -> oversight_pb2.ListStuckResponse:
    found: list[audit_pb2.StuckCompensation] = []
    more = True
    while more:
        request = oversight_pb2.ListStuckRequest(after=found[-1] if found else None, limit=PAGE)
        page = await call_service("oversight", stub.ListStuck(request, **options))
        found += page.items
        more = page.more
    return oversight_pb2.ListStuckResponse(items=found)


def _row(one: audit_pb2.StuckCompensation) -> tuple[str, ...]:
    left = f"{one.left_by} ({one.left_reason})" if one.left_by else ""
    by = one.action or "a person"
    return one.kernel_id, one.kernel, one.scope, one.execution, one.of, by, str(one.attempts), one.stuck_at, left


def _lines(found: oversight_pb2.GetStuckResponse) -> list[str]:
    one, kernel = found.compensation, found.described
    actions = {action.id: action for action in kernel.definition.actions}
    return [
        f"kernel    {found.kernel or '-'}  {kernel.kernel_id}",
        f"caller    {found.scope or '-'}",
        f"step      {one.execution}  of saga {one.saga}",
        f"done      {one.of}{_effects(actions.get(one.of))}",
        f"by        {one.action or 'a person'}{_effects(actions.get(one.action))}",
        f"state     {'STUCK' if one.stuck else 'to be tried'}, {one.attempts} attempts",
        f"record    {one.fence}",
        *(
            f"budget    {one.name}  left {one.remaining_micros} of {one.limit_micros} millionths"
            for one in kernel.resources
        ),
    ]


def _effects(action: kernel_pb2.Action | None) -> str:
    if action is None:
        return ""
    return "".join(
        f"  {kernel_pb2.EffectMode.Name(one.mode).removeprefix('EFFECT_MODE_').lower()} {one.variable}"
        for one in action.effects
    )


def _told(message: Any) -> dict[str, Any]:
    told: dict[str, Any] = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return told


def _print(lines: list[str]) -> None:
    for line in lines:
        typer.echo(plain(line).rstrip())
