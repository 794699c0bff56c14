"""``interlock oversight``: reviewers' keys, and approvals made with them (SPEC-012 §6.2).

A private key never leaves its file; an approval is printed and nothing is sent anywhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import typer
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.cli.output import Format, Output, print_json, refusals
from interlock.domain import approval, ids
from interlock.domain.agents import NAME
from interlock.domain.approval import Approval
from interlock.domain.errors import invalid, unavailable
from interlock.policy.reviewers import key_bytes, key_text
from interlock.policy.watched import content_of, document_of
from interlock.runtime.clock import iso8601, system_clock

app = typer.Typer(no_args_is_help=True, help="Make reviewers' keys and approvals.")

REVIEWER = typer.Argument(help="Who the key is for, such as reviewer@company.com.")
OUT = typer.Option(
    ..., "--out", help="File to write the private key to; readable by its owner only, never overwritten."
)
SESSION = typer.Option(..., "--session", help="Session that wants to delegate.")
AGENT = typer.Option("", "--agent", help="Agent type that is delegated to. Absent: an agent that is not registered.")
KEY = typer.Option(..., "--key", help="The reviewer's private key, from `interlock oversight keygen`.")
MINUTES = typer.Option(15, "--minutes", min=1, max=approval.LONGEST_LIFE_S // 60, help="How long it can be used.")


@app.callback()
def oversight() -> None:
    """Make reviewers' keys and approvals."""


@app.command()
def keygen(reviewer: str = REVIEWER, out: Path = OUT, output: Output = Format.TEXT) -> None:
    """Make a reviewer's key pair; the public half is printed as reviewers_file has it.

    Exit 0: written. 2: refused; a file that is there is never overwritten.
    """
    with refusals(output):
        if not approval.REVIEWER.fullmatch(reviewer):
            raise invalid("REVIEWERS_INVALID", "a reviewer's name has 1 to 128 letters, digits and ._@+-")
        key = Ed25519PrivateKey.generate()
        _write(out, yaml.safe_dump({"reviewer": reviewer, "private_key": key_text(key.private_bytes_raw())}))
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
        reviewer, private = _private_key(key)
        if agent and not NAME.fullmatch(agent):
            raise invalid("AGENTS_INVALID", "--agent: not a name of an agent type")
        now_s = system_clock() // 1_000_000
        made = Approval(
            approval_id=approval.approval_id(os.urandom(16)),
            reviewer=reviewer,
            action=approval.DELEGATE,
            scope={"session": ids.check("crp_sess_", session), "agent": agent},
            issued_at=now_s,
            expires_at=now_s + 60 * minutes,
        )
    payload = approval.payload_of(made)
    token = approval.token(payload, private.sign(approval.signed_bytes(payload)))
    if output is Format.JSON:
        expires = iso8601(made.expires_at * 1_000_000)
        print_json({"token": token, "approval_id": made.approval_id, "reviewer": reviewer, "expires_at": expires})
    else:
        typer.echo(token)


def _private_key(path: Path) -> tuple[str, Ed25519PrivateKey]:
    content = content_of(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise invalid("KEY_FILE_OPEN", f"{path} can be read by others, so it proves nothing", hint=f"chmod 600 {path}")
    document = document_of(content, path)
    rule = "a file that `interlock oversight keygen` wrote"
    if not isinstance(document, dict) or document.keys() != {"reviewer", "private_key"}:
        raise invalid("REVIEWERS_INVALID", f"{path}: expected {rule}")
    reviewer = document["reviewer"]
    if not isinstance(reviewer, str) or not approval.REVIEWER.fullmatch(reviewer):
        raise invalid("REVIEWERS_INVALID", f"{path}: reviewer: expected {rule}")
    return reviewer, Ed25519PrivateKey.from_private_bytes(key_bytes(document["private_key"], "private_key", rule))


def _write(path: Path, text: str) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise invalid("FILE_EXISTS", f"{path} is there already, and a key is never overwritten") from None
    except OSError as error:
        raise unavailable("FILE_NOT_WRITTEN", f"{path}: {type(error).__name__}", retry_after_ms=0) from None
