"""``interlock``: one command. Its subcommands are imported on use, so that an idle sidecar stays small."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from interlock.cli.output import EXIT_CODES, outer_fault, print_defect, print_refusal, wants_json
from interlock.domain.errors import Refused

COMMANDS = {
    "serve": ("interlock.cli.serve", "serve", "Run the whole mesh in one process, or one service."),
    "run": ("interlock.cli.run", "run", "Run an agent behind a mesh of its own, and say at its end what was found."),
    "check": ("interlock.cli.check.command", "check", "Find missing or misconfigured parts, with a hint for each."),
    "init": (
        "interlock.cli.config.sample",
        "init",
        "Write a settings file: every setting by subject, with its default.",
    ),
    "config": ("interlock.cli.config.commands", "app", "Show every setting in force and where its value came from."),
    "demo": (
        "interlock.cli.demo",
        "demo",
        "Show a governed conversation that ends with a halt. Needs no key and no network.",
    ),
    "console": ("interlock.cli.watching.console", "console", "Print the link to the live console of the running mesh."),
    "top": (
        "interlock.cli.watching.top",
        "top",
        "Sessions with their budgets, calls and halts in a terminal, as they change.",
    ),
    "policy": (
        "interlock.cli.policy.commands",
        "app",
        "Parse, lint, explain and compare safety policies; test and simulate one.",
    ),
    "session": ("interlock.cli.session", "app", "Show a session: budget, breaker, windows. Draw its graph."),
    "kernel": ("interlock.cli.kernel", "app", "What agents may do: budgets, state, actions; try, execute, watch."),
    "mcp": ("interlock.cli.mcp", "mcp", "Stand between an agent and its tool server: every call needs a permit."),
    "decision": (
        "interlock.cli.decision",
        "app",
        "What agents proposed and the engine decided; watch, serve and certify agents.",
    ),
    "audit": ("interlock.cli.audit.commands", "app", "Verify and export the audit chain of a session."),
    "agents": ("interlock.cli.agents", "app", "Register agent types: keys, limits, strategies, policies."),
    "oversight": ("interlock.cli.oversight.commands", "app", "Review held responses; manage reviewers' keys."),
    "keys": (
        "interlock.cli.keys.commands",
        "app",
        "Create, rotate and check master keys; create development certificates.",
    ),
    "models": ("interlock.cli.models", "app", "List, verify, fetch and serve the models."),
    "conformance": (
        "interlock.cli.conformance.commands",
        "app",
        "Print weights and hashes; run the test vectors of the specification.",
    ),
    "dpe": ("interlock.cli.dpe", "app", "Analyze answers against their facts."),
    "version": ("interlock.cli.config.about", "about", "Print the versions of Interlock and of what it runs on."),
}
"""Command → module, its attribute (a function or a typer app), one line of help."""


class LazyGroup(TyperGroup):
    """A command group that imports a command only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of use."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return one command. An unknown name ends with the nearest one."""
        if cmd_name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            ctx.fail(f"No such command '{cmd_name}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        module, attribute, _ = COMMANDS[cmd_name]
        found = getattr(importlib.import_module(module), attribute)
        parent = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=cmd_name)
            return typer.main.get_group(parent).commands[cmd_name]
        parent.command(cmd_name)(found)
        return typer.main.get_command(parent)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, _, help_text) in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"interlock {version('interlock')}")
        raise typer.Exit


@app.callback()
def interlock(
    config: Annotated[
        Path | None, typer.Option("--config", help="YAML file of settings; INTERLOCK_* variables override it.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """A safety interlock for chains of AI agents.

    Start everything with `interlock serve`. Point an agent at it with OPENAI_BASE_URL=http://127.0.0.1:7070/v1. Run
    `interlock check` if something does not work. Every command takes -o json.
    """
    from interlock.runtime import logging

    logging.configure("warning", cache=False)  # standard output belongs to the command
    if config is not None:
        os.environ["INTERLOCK_CONFIG_FILE"] = str(config)


def run() -> None:
    """Run the command line of this process. A refusal is one line and a hint, never a traceback."""
    # We never fork without exec, so gRPC's fork handlers would only print warnings. gRPC reads this at import.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    if "serve" in sys.argv[1:]:
        from interlock.runtime import memory  # the command line starts without the runtime

        memory.spare_drawing()
    try:
        app(prog_name="interlock")
    except Refused as refused:
        sys.exit(print_refusal(refused, as_json=wants_json(sys.argv[1:])))
    except Exception as error:  # noqa: BLE001 - nothing is behind it; a defect has an exit code of its own
        as_json = wants_json(sys.argv[1:])
        told = outer_fault(error, sys.argv[1:])
        sys.exit(print_refusal(told, as_json=as_json) if told else print_defect(error, as_json=as_json))


if __name__ == "__main__":
    run()
