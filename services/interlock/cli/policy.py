"""``interlock policy``: parse a policy like the service, and compare a child's policy with its parent's."""

from __future__ import annotations

import sys

import typer

from interlock.cli.output import NEGATIVE, Format, Output, print_json, print_refusal
from interlock.domain.errors import Refused
from interlock.domain.policy.directives import Policy, canonical, directives, policy_hash
from interlock.domain.policy.policy_order import relaxations
from interlock.domain.policy.policy_text import parse as parse_policy

app = typer.Typer(no_args_is_help=True, help="Parse a safety policy; compare a child's policy with its parent's.")

TEXT = typer.Argument(help="Policy as in CRP-Safety-Policy, such as 'halt-on CRITICAL; require-grounding 0.75'.")
PARENT = typer.Argument(help="The parent's policy.")
CHILD = typer.Argument(help="The child's explicit policy.")

_MARGIN = 30


@app.command()
def parse(text: str = TEXT, output: Output = Format.TEXT) -> None:
    """Show the directives of a policy with its profile expanded, its canonical text and its hash.

    Exit 0: it is well formed. 2: it is not; the position, the expected text and the nearest name are shown.
    """
    policy = _read(text, "", output)
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


@app.command()
def compare(parent: str = PARENT, child: str = CHILD, output: Output = Format.TEXT) -> None:
    """Check that a child's policy is at least as strict as its parent's: nothing is relaxed or left out.

    Exit 0: it is. 1: it relaxes the parent's; each directive is named with both values. 2: one policy is malformed.
    """
    found = relaxations(_read(parent, "parent", output), _read(child, "child", output))
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


def _read(text: str, which: str, output: Format) -> Policy:
    try:
        return parse_policy(text)
    except Refused as refused:
        if which:
            refused.metadata["policy"] = which
        code = print_refusal(refused, as_json=output is Format.JSON)
        if output is Format.TEXT:
            sys.stderr.write(_pointed(text, refused, which))
        raise typer.Exit(code) from None


def _pointed(text: str, refused: Refused, which: str) -> str:
    """Return the text around the error with a caret below its position, and the nearest name."""
    position = int(refused.metadata.get("position", "0"))
    start = max(0, position - _MARGIN)
    excerpt = "".join(c if " " <= c <= "~" else "?" for c in text[start : position + _MARGIN])
    lines = [f"in the {which}'s policy:"] if which else []
    lines += [f"  {excerpt}", f"  {' ' * (position - start)}^"]
    if near := refused.metadata.get("did_you_mean"):
        lines.append(f"did you mean {near}?")
    return "\n".join(lines) + "\n"
