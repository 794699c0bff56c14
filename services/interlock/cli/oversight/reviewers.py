"""``interlock oversight reviewers``: the reviewers of the policy service and their allowed actions (SPEC-012 §6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import typer

from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.cli.asking import asked
from interlock.cli.output import NEGATIVE, Format, Output, print_json, refusals
from interlock.runtime.settings.loading import load

if TYPE_CHECKING:
    from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub

app = typer.Typer(no_args_is_help=True, help="List, register and remove reviewers.")

NAME = typer.Argument(help="Name of the reviewer, such as reviewer@company.com.")
PUBLIC = typer.Option(
    ..., "--public-key", help="ed25519: and 43 characters, as `interlock oversight keygen` prints it."
)
ACTIONS = typer.Option(
    [], "--action", help="Action that the key may approve; repeatable. Default: delegate, release and reject."
)
ROLE = typer.Option(
    "reviewer", "--role", help="Role in the console: viewer, reviewer or admin. A viewer may approve nothing."
)


@app.command(name="list")
def list_(output: Output = Format.TEXT) -> None:
    """List the reviewers from the file and those registered by RPC, with their roles and allowed actions.

    Queries the policy service at INTERLOCK_POLICY_ADDRESS. Exit 0: listed. 2: no answer.
    """
    with refusals(output):
        settings, request = load(), policy_pb2.ListReviewersRequest()
        found = asked("policy", settings, lambda c: _stub(c).ListReviewers(request, timeout=settings.rpc_timeout_s))
    listed = [
        {
            "reviewer_id": one.reviewer_id, "public_key": one.public_key, "actions": list(one.actions),
            "from_file": one.from_file, "role": one.role, "sees_keys": list(one.sees_keys),
            "sees_agent_types": list(one.sees_agent_types),
        }
        for one in found.reviewers
    ]  # fmt: skip
    if output is Format.JSON:
        print_json({"reviewers": listed})
        return
    for one in found.reviewers:
        where = "file" if one.from_file else "rpc"
        typer.echo(f"{one.reviewer_id}  {one.public_key}  {where}  {one.role}  {', '.join(one.actions)}")
    if not listed:
        typer.echo("there are no reviewers: set INTERLOCK_REVIEWERS_FILE")


@app.command()
def register(
    name: str = NAME,
    public_key: str = PUBLIC,
    actions: list[str] = ACTIONS,
    role: str = ROLE,
    output: Output = Format.TEXT,
) -> None:
    """Register or replace a reviewer in the memory of the policy service, until that process ends.

    Needs INTERLOCK_REVIEWERS_BY_RPC=true in the policy service. Exit 0: registered. 2: refused; nothing was changed.
    """
    with refusals(output):
        reviewer = policy_pb2.Reviewer(reviewer_id=name, public_key=public_key, actions=actions, role=role)
        settings, request = load(), policy_pb2.RegisterReviewerRequest(reviewer=reviewer)
        answer = asked("policy", settings, lambda c: _stub(c).RegisterReviewer(request, timeout=settings.rpc_timeout_s))
    if output is Format.JSON:
        print_json({"reviewer_id": name, "replaced": answer.replaced})
    else:
        typer.echo(f"{name} {'replaced' if answer.replaced else 'registered'}")


@app.command()
def remove(name: str = NAME, output: Output = Format.TEXT) -> None:
    """Remove a reviewer that was registered by RPC. Remove a reviewer of the file in the file.

    Exit 0: removed. 1: there was none. 2: refused.
    """
    with refusals(output):
        settings, request = load(), policy_pb2.RemoveReviewerRequest(reviewer_id=name)
        answer = asked("policy", settings, lambda c: _stub(c).RemoveReviewer(request, timeout=settings.rpc_timeout_s))
    if output is Format.JSON:
        print_json({"reviewer_id": name, "removed": answer.removed})
    else:
        typer.echo(f"{name} {'removed' if answer.removed else 'was not registered'}")
    raise typer.Exit(0 if answer.removed else NEGATIVE)


def _stub(channel: grpc.aio.Channel) -> PolicyServiceAsyncStub:
    return policy_pb2_grpc.PolicyServiceStub(channel)
