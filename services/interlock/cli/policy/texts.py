"""Policies and files on the command line: read them, and show a mistake with a caret below its place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer

from interlock.cli.output import Format, print_refusal
from interlock.domain.errors import Refused, exhausted, unavailable
from interlock.domain.policy.directives import Policy
from interlock.domain.policy.policy_text import parse

TEXT = typer.Argument(
    help="Policy as in CRP-Safety-Policy, such as 'halt-on CRITICAL; require-grounding 0.75', or @FILE."
)

LARGEST_BYTES = 1_048_576
_MARGIN = 30

A = TypeVar("A")


def given(text: str, output: Format) -> str:
    """Return a policy text: *text* itself, or what the file holds that ``@FILE`` names. No policy begins with an ``@``."""
    if not text.startswith("@"):
        return text
    try:
        return content(Path(text[1:])).decode("utf-8", "replace").rstrip()
    except Refused as refused:
        raise typer.Exit(print_refusal(refused, as_json=output is Format.JSON)) from None


def content(path: Path) -> bytes:
    """Return the bytes of a file. Refused with FILE_UNREADABLE or FILE_TOO_LARGE."""
    try:
        with path.open("rb") as file:
            found = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise unavailable("FILE_UNREADABLE", f"{path}: {type(error).__name__}", retry_after_ms=0) from None
    if len(found) > LARGEST_BYTES:
        raise exhausted("FILE_TOO_LARGE", f"{path} has more than {LARGEST_BYTES} bytes")
    return found


def read(text: str, which: str, output: Format) -> Policy:
    """Return the policy in *text*; a mistake ends the command, with its place. *which* says whose policy it is."""
    return understood(text, which, output, parse)


def understood(text: str, which: str, output: Format, reader: Callable[[str], A]) -> A:
    """Return what *reader* makes of a policy text; a mistake ends the command, with its place."""
    try:
        return reader(text)
    except Refused as refused:
        if which:
            refused.metadata["policy"] = which
        raise typer.Exit(told(refused, text, which, output)) from None


def told(refused: Refused, text: str, which: str, output: Format) -> int:
    """Print a refusal of a policy text with its place, and return the exit code."""
    code = print_refusal(refused, as_json=output is Format.JSON)
    if output is Format.TEXT:
        sys.stderr.write(_pointed(text, refused.metadata, which))
    return code


def _pointed(text: str, details: dict[str, Any], which: str) -> str:
    lines = [f"in the {which}'s policy:"] if which else []
    lines += caret(text, int(details.get("position", "0")))
    if near := details.get("did_you_mean"):
        lines.append(f"did you mean {near}?")
    return "\n".join(lines) + "\n"


def caret(text: str, position: int) -> list[str]:
    """Return the text around a position, and a line with a caret below it."""
    start = max(0, position - _MARGIN)
    excerpt = "".join(c if " " <= c <= "~" else "?" for c in text[start : position + _MARGIN])
    return [f"  {excerpt}", f"  {' ' * (position - start)}^"]
