"""``interlock oversight approve-erasure`` and ``approve-truncation``: a reviewer's approval of one operator action."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from interlock.cli.output import LARGEST, Format, Output, print_json, refusals
from interlock.cli.oversight.reviewer_key import approved, private_key
from interlock.domain import approval, ids
from interlock.runtime.clock import iso8601

SESSION = typer.Argument(help="Session whose contents will be erased.")
SIZE = typer.Argument(min=1, max=LARGEST, help="The anchored size, as in the refusal: anchored_size.")
KEY = typer.Option(..., "--key", help="The reviewer's private key, from `interlock oversight keygen`.")
MINUTES = typer.Option(
    15, "--minutes", min=1, max=approval.LONGEST_LIFE_S // 60, help="Lifetime of the approval in minutes."
)


def approve_erasure(
    session_id: str = SESSION, key: Path = KEY, minutes: int = MINUTES, output: Output = Format.TEXT
) -> None:
    """Approve the erasure of one session's contents, for `interlock audit erase --approval`.

    It can be used once, for this session, until it expires. Exit 0: printed. 2: refused.
    """
    with refusals(output):
        scope = {"session": ids.check("crp_sess_", session_id)}
    _print(approval.ERASE, scope, key, minutes, output)


def approve_truncation(size: int = SIZE, key: Path = KEY, minutes: int = MINUTES, output: Output = Format.TEXT) -> None:
    """Approve that the audit log continues without the lost anchored entries, for `interlock audit acknowledge-truncation`.

    It can be used once, for this loss, until it expires. Exit 0: printed. 2: refused.
    """
    _print(approval.ACKNOWLEDGE, {"size": str(size)}, key, minutes, output)


def _print(action: str, scope: Mapping[str, str], key: Path, minutes: int, output: Format) -> None:
    with refusals(output):
        reviewer, private = private_key(key)
        made, token = approved(reviewer, private, action, scope, life_s=60 * minutes)
    if output is Format.JSON:
        expires = iso8601(made.expires_at * 1_000_000)
        print_json({"token": token, "approval_id": made.approval_id, "reviewer": reviewer, "expires_at": expires})
    else:
        typer.echo(token)
