"""What every command prints the same way: JSON with ``-o json``, and refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer

from interlock.domain.errors import Refused

OK, NEGATIVE, REFUSED, DEFECT = 0, 1, 2, 70

EXIT_CODES = (
    "Exit codes: 0 done; 1 done, and the answer is no (a check failed, a relaxation, a broken chain); "
    "2 refused: bad usage, a bad setting, a service that cannot answer; 70 a defect of ours; 130 interrupted."
)


class Format(StrEnum):
    """How a command prints what it found."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", help="text for people, json for programs.")]
"""The ``-o`` option: ``def command(output: Output = Format.TEXT)``."""


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON document on one line, keys as given."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


@contextmanager
def refusals(output: Format) -> Iterator[None]:
    """End the command with the code of the refusal that its block raises, once that is printed."""
    try:
        yield
    except Refused as refused:
        raise typer.Exit(print_refusal(refused, as_json=output is Format.JSON)) from None


def print_refusal(refused: Refused, *, as_json: bool) -> int:
    """Print a refusal on standard error, as JSON on standard output when asked, and return the exit code."""
    if as_json:
        error = {"reason": refused.reason, "message": refused.message, "metadata": refused.metadata}
        print_json({"error": error})
    else:
        sys.stderr.write(f"error: {refused.reason}: {refused.message}\n")
        if hint := refused.metadata.get("hint"):
            sys.stderr.write(f"hint: {hint}\n")
    return REFUSED


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON; needed where no command got to parse it."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(a in {"-ojson", "--output=json"} or (a in {"-o", "--output"} and b == "json") for a, b in pairs)
