"""``interlock oversight``: reviewers, their keys, the queue of held responses, and decisions (SPEC-012 §6.2).

A private key is never sent; only signatures are.
"""

from __future__ import annotations

from pathlib import Path

import typer
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.cli.output import Format, Output, print_json, refusals
from interlock.cli.oversight import acts, held, reviewers, stuck
from interlock.cli.oversight.reviewer_key import approved, private_key, write_key
from interlock.domain import approval, ids
from interlock.domain.agents import NAME
from interlock.domain.errors import invalid
from interlock.policy.reviewers import key_text
from interlock.runtime.clock import iso8601

app = typer.Typer(
    no_args_is_help=True,
    help="Review held responses and stuck compensations; manage reviewers, their keys and approvals.",
)
app.command(name="list")(held.list_held)
app.command()(held.show)
app.command()(held.approve)
app.command()(held.reject)
app.command(name="sign-in")(held.sign_in)
app.command(name="approve-erasure")(acts.approve_erasure)
app.command(name="approve-truncation")(acts.approve_truncation)
app.add_typer(reviewers.app, name="reviewers")
app.add_typer(stuck.app, name="stuck")

REVIEWER = typer.Argument(help="Name of the reviewer, such as reviewer@company.com.")
OUT = typer.Option(..., "--out", help="File for the private key; readable by its owner only, never overwritten.")
SESSION = typer.Option(..., "--session", help="Session that will delegate.")
AGENT = typer.Option("", "--agent", help="Agent type of the sub-agent. Default: an unregistered agent.")
KEY = typer.Option(..., "--key", help="The reviewer's private key, from `interlock oversight keygen`.")
MINUTES = typer.Option(
    15, "--minutes", min=1, max=approval.LONGEST_LIFE_S // 60, help="Lifetime of the approval in minutes."
)


@app.callback()
def oversight() -> None:
    """Review held responses; create reviewers' keys and approvals."""


@app.command()
def keygen(reviewer: str = REVIEWER, out: Path = OUT, output: Output = Format.TEXT) -> None:
    """Create a reviewer's key pair, and print the public key in the format of reviewers_file.

    Exit 0: written. 2: refused; an existing file is never overwritten.
    """
    with refusals(output):
        if not approval.REVIEWER.fullmatch(reviewer):
            raise invalid("REVIEWERS_INVALID", "a reviewer's name has 1 to 128 letters, digits and ._@+-")
        key = Ed25519PrivateKey.generate()
        write_key(out, yaml.safe_dump({"reviewer": reviewer, "private_key": key_text(key.private_bytes_raw())}))
    public = key_text(key.public_key().public_bytes_raw())
    if output is Format.JSON:
        print_json({"reviewer": reviewer, "public_key": public})
    else:
        typer.echo(f"reviewers:\n  {reviewer}:\n    public_key: {public}")


@app.command(name="approve-delegation")
def approve_delegation(
    session: str = SESSION, agent: str = AGENT, key: Path = KEY, minutes: int = MINUTES, output: Output = Format.TEXT
) -> None:
    """Approve one delegation of a session whose breaker is half open, and print the value of CRP-Oversight-Token.

    It can be used once, for this session and this agent type, until it expires. Exit 0: printed. 2: refused.
    """
    with refusals(output):
        reviewer, private = private_key(key)
        if agent and not NAME.fullmatch(agent):
            raise invalid("AGENTS_INVALID", "--agent: not a valid name of an agent type")
        scope = {"session": ids.check("crp_sess_", session), "agent": agent}
        made, token = approved(reviewer, private, approval.DELEGATE, scope, life_s=60 * minutes)
    if output is Format.JSON:
        expires = iso8601(made.expires_at * 1_000_000)
        print_json({"token": token, "approval_id": made.approval_id, "reviewer": reviewer, "expires_at": expires})
    else:
        typer.echo(token)
