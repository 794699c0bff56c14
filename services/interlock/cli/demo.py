"""``interlock demo``: a governed local conversation, without an API key, that ends with a halt and a verified chain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from interlock.cli.output import NEGATIVE, REFUSED, Format, Output, print_json

INTERRUPTED = 130


def demo(
    output: Output = Format.TEXT,
    tree: Annotated[bool, typer.Option("--tree", help="Run a tree of agents instead of one agent.")] = False,
    kernel: Annotated[bool, typer.Option("--kernel", help="Run five agents that share one kernel.")] = False,
    decide: Annotated[bool, typer.Option("--decide", help="Run a search that four agents advise.")] = False,
    open_it: Annotated[
        bool, typer.Option("--open", help="Leave it running, with its console open, until Ctrl-C.")
    ] = False,
) -> None:
    """Run a recorded conversation through the whole mesh and show every decision.

    With --tree: an orchestrator and three specialists, each a process with its own sidecar; one exhausts the budget of the tree.
    With --kernel: five processes share a budget of actions; one is killed in the middle of a saga, all are stopped. Beside it the same on
    clampai, where that is installed.
    With --decide: a real search for hyper-parameters, steered by four agents, of which one is killed; beside it without agents.
    With --open: the conversation stays, to be looked at in the live console; the link is printed and opened.

    Needs no key and no network. Exit 0: every promise of the demonstration held. 1: one did not. With -o json the
    conversation is shown on standard error, and one JSON document goes to standard output.

    Examples: interlock demo | interlock demo --tree | interlock demo --open | NO_COLOR=1 interlock demo | interlock demo -o json
    """
    if open_it and (tree or kernel or decide):
        raise typer.BadParameter("the conversation alone stays open", param_hint="--open")
    run = _chosen(tree=tree, kernel=kernel, decide=decide, stays=open_it)
    from interlock.demo.mesh import MeshFailedError, interrupt_on_stop
    from interlock.demo.view import console

    out = console(stderr=output is Format.JSON)
    interrupt_on_stop()
    try:
        shown = run(out)
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


def _chosen(*, tree: bool, kernel: bool, decide: bool, stays: bool) -> Callable[[Any], Any]:
    """Import and return the demonstration. Ends with REFUSED where its packages are not installed."""
    try:
        if decide:
            from interlock.demo.decide import run as deciding

            return deciding
        if kernel:
            from interlock.demo.kernel import run as of_five

            return of_five
        if tree:
            from interlock.demo.tree import run as of_agents

            return of_agents
        from interlock.demo.run import run as alone
    except ModuleNotFoundError as error:
        if error.name not in {"openai", "optuna", "sklearn"}:
            raise
        needed, extra = ("Optuna and scikit-learn", "decide") if decide else ("the openai client", "demo")
        typer.echo(f"interlock demo needs {needed}: pip install 'interlock[{extra}]'", err=True)
        raise typer.Exit(REFUSED) from None
    return partial(alone, stays=stays)
