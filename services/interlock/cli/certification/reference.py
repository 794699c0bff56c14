"""``interlock decision agent``: serve one of the four reference agents in this process (DEC-11)."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import typer

from interlock.cli.output import REFUSED, Format, Output, print_json, refusals
from interlock.client.decision.places import DecisionRefusedError
from interlock.client.decision.reference.agents import AGENTS
from interlock.client.decision.running import run
from interlock.domain.errors import invalid

NAME = typer.Argument(help="trainer, analyst, protocol or strategy.")
AT = typer.Option("", "--at", help="The decision service, HOST:PORT. Default: INTERLOCK_DECISION_AT.")
CA = typer.Option(None, "--ca", help="PEM file of the authority of its certificate. Default: plain text.")
DESCRIBE = typer.Option(False, "--describe", help="Print what it declares, and end.")


def agent(
    name: str = NAME,
    at: str = AT,
    ca: Path | None = CA,
    describe: bool = DESCRIBE,
    output: Output = Format.TEXT,
) -> None:
    """Serve a reference agent. Its ticket is in INTERLOCK_DECISION_TICKET. Exit 2: the service refuses it.

    Examples: interlock decision agent analyst | interlock decision agent analyst --describe
    """
    with refusals(output):
        if name not in AGENTS:
            raise invalid("DECISION_AGENT_UNKNOWN", f"reference agents are {', '.join(AGENTS)}")
    if describe:
        print_json(AGENTS[name].descriptor.told())
        return
    logging.basicConfig(level=logging.WARNING)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            run(AGENTS[name](), at=at, ca=ca)
    except DecisionRefusedError as refused:
        typer.echo(f"error: {refused}", err=True)
        raise typer.Exit(REFUSED) from None
