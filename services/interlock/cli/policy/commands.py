"""``interlock policy``: parse, lint and explain a policy, compare and diff two, run cases, replay what is recorded."""

from __future__ import annotations

import typer

from interlock.cli.output import NEGATIVE, Format, Output, print_json
from interlock.cli.policy import simulate, workbench
from interlock.cli.policy.texts import TEXT, given, read
from interlock.domain.policy.directives import canonical, directives, policy_hash
from interlock.domain.policy.policy_order import relaxations

app = typer.Typer(no_args_is_help=True, help="Parse, lint, explain and compare safety policies; test and simulate one.")

PARENT = typer.Argument(help="The parent's policy, or @FILE.")
CHILD = typer.Argument(help="The child's explicit policy, or @FILE.")


@app.command()
def parse(text: str = TEXT, output: Output = Format.TEXT) -> None:
    """Show the directives of a policy with its profile expanded, its canonical text and its hash.

    Exit 0: it is well formed. 2: it is not; the position, the expected text and the nearest name are shown.
    """
    policy = read(given(text, output), "", output)
    written, found = canonical(policy), directives(policy)
    if output is Format.JSON:
        print_json(
            {
                "directives": [{"name": name, "values": list(values)} for name, values in found],
                "canonical_text": written,
                "policy_hash": policy_hash(written),
            }
        )
        return
    width = max(len(name) for name, _ in found)
    for name, values in found:
        typer.echo(f"{name:<{width}}  {' '.join(values)}".rstrip())
    typer.echo(f"\ncanonical  {written}\nhash       {policy_hash(written)}")


app.command()(workbench.lint)
app.command()(workbench.explain)


@app.command()
def compare(parent: str = PARENT, child: str = CHILD, output: Output = Format.TEXT) -> None:
    """Check that a child's policy is at least as strict as its parent's: nothing is relaxed or left out.

    Exit 0: it is. 1: it relaxes the parent's; each directive is named with both values. 2: one policy is malformed.
    """
    found = relaxations(
        read(given(parent, output), "parent", output), read(given(child, output), "child", output)
    )  # fmt: skip
    if output is Format.JSON:
        relaxed = [{"directive": r.directive, "parent": r.parent_value, "child": r.child_value} for r in found]
        print_json({"at_least_as_strict": not found, "relaxations": relaxed})
    elif found:
        typer.echo("the child relaxes its parent:")
        for each in found:
            typer.echo(f"  {each.directive}: parent {each.parent_value}, child {each.child_value or 'leaves it out'}")
    else:
        typer.echo("the child is at least as strict as its parent")
    if found:
        raise typer.Exit(NEGATIVE)


app.command()(workbench.diff)
app.command("test")(workbench.run_cases)
app.command()(simulate.simulate)
