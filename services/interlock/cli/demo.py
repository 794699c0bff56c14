"""``interlock demo``: a governed local conversation, without an API key, that ends with a halt and a verified chain."""

from __future__ import annotations

from typing import Annotated

import typer

from interlock.cli.output import NEGATIVE, REFUSED, Format, Output, print_json

INTERRUPTED = 130


def demo(
    output: Output = Format.TEXT,
    tree: Annotated[bool, typer.Option("--tree", help="Run a tree of agents instead of one agent.")] = False,
) -> None:
    """Run a recorded conversation through the whole mesh and show every decision.

    With --tree: an orchestrator and three specialists, each a process with its own sidecar; one exhausts the budget of the tree.

    Needs no key and no network. Exit 0: every promise of the demonstration held. 1: one did not. With -o json the
    conversation is shown on standard error, and one JSON document goes to standard output.

    Examples: interlock demo | interlock demo --tree | NO_COLOR=1 interlock demo | interlock demo -o json
    """
    try:
        from interlock.demo import run as alone
        from interlock.demo import tree as of_agents
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        typer.echo("interlock demo needs the openai client: pip install 'interlock[demo]'", err=True)
        raise typer.Exit(REFUSED) from None
    from interlock.demo.mesh import MeshFailedError, interrupt_on_stop
    from interlock.demo.view import console

    out = console(stderr=output is Format.JSON)
    interrupt_on_stop()
    try:
        shown = of_agents.run(out) if tree else alone.run(out)
    except MeshFailedError as error:
        out.print(f"\nThe mesh failed: {error}", markup=False)
        raise typer.Exit(REFUSED) from None
    except KeyboardInterrupt:
        out.print("\nStopped. All started processes have ended.")
        raise typer.Exit(INTERRUPTED) from None
    for sentence in shown.broken:
        out.print(f"NOT AS PROMISED: {sentence}", style="bold red", markup=False)
    if output is Format.JSON:
        print_json(shown.as_json())
    if shown.broken:
        raise typer.Exit(NEGATIVE)
