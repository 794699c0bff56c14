"""``interlock console``: the link that signs the operator in to the live console, to look (OBS-5)."""

from __future__ import annotations

import getpass
import re
import webbrowser

import typer

from interlock.cli.output import Format, Output, print_json, refusals
from interlock.oversight import link
from interlock.runtime.settings.loading import load

OPEN = typer.Option(False, "--open", help="Open it in the browser of this machine.")
VIEWER = typer.Option(
    "", "--viewer", help="Name for the record of what was looked at. Default: the user of this machine."
)


def console(open_it: bool = OPEN, viewer: str = VIEWER, output: Output = Format.TEXT) -> None:
    """Print the link to the live console of the process that runs over this state folder.

    It shows sessions, trees, windows and callers' budgets, in the role of INTERLOCK_CONSOLE_LINK_ROLE, and decides no held answer.
    Exit 0: printed. 2: no such process, or the link is no way to sign in here.
    """
    with refusals(output):
        found = link.read(load())
    url = found.url(viewer or re.sub(r"[^A-Za-z0-9._@+-]", "-", getpass.getuser())[:128] or "operator")
    if output is Format.JSON:
        print_json({"origin": found.origin, "url": url})
    else:
        typer.echo(url)
    if open_it:
        webbrowser.open(url)
