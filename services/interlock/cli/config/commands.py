"""``interlock config``: every effective setting and where its value came from."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated

import typer

from interlock.cli.output import Format, Output, print_json, refusals
from interlock.runtime.settings.loading import EffectiveSetting, explain, unknown_variables
from interlock.runtime.settings.profile_files import ProfileName

app = typer.Typer(no_args_is_help=True, help="Show every setting in force and where its value came from.")

ABSENT = "(absent)"


@app.callback()
def config() -> None:
    """Show every setting in force and where its value came from."""


@app.command()
def show(
    output: Output = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings whose value is not the default's.")] = False,
    profile: Annotated[
        ProfileName | None, typer.Option(help="What would be in force under this profile, as with serve --profile.")
    ] = None,
) -> None:
    """Show each setting's value in force and its origin: default, profile NAME, file, environment or flag.

    The order is: flag over environment (INTERLOCK_*) over file (--config) over profile over default. Keys and passwords are
    shown as ***. Exit 2: the settings do not hold together; each fault is named.

    Examples: interlock config show --changed | interlock config show --profile regulated --json
    """
    form = Format.JSON if as_json else output
    with refusals(form):
        found = explain(flags={"profile": profile} if profile else {})
    shown = [each for each in found if each.origin != "default" or not changed]
    if form is Format.JSON:
        print_json({"settings": [asdict(each) for each in shown], "unknown_variables": unknown_variables(os.environ)})
        return
    _print(shown)
    for name in unknown_variables(os.environ):
        typer.echo(f"{name}: no setting has this name", err=True)


def _print(shown: list[EffectiveSetting]) -> None:
    name_width = max((len(each.name) for each in shown), default=0)
    origin_width = max((len(each.origin) for each in shown), default=0)
    for each in shown:
        typer.echo(f"{each.name:<{name_width}}  {each.origin:<{origin_width}}  {_text(each.value)}")


def _text(value: object) -> str:
    """Return a value as YAML would have it, so that a line can be copied into a file."""
    if value is None or value == "":
        return ABSENT
    return str(value).lower() if isinstance(value, bool) else str(value)
