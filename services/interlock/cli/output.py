"""Output that all commands share: JSON with ``-o json``, and refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any

import typer

from interlock.domain.errors import Kind, Refused, invalid, unavailable

OK, NEGATIVE, REFUSED, DEFECT = 0, 1, 2, 70
PLACES = 6
"""Places of the code that a defect tells."""
LARGEST = 2**63 - 1
"""Largest number that a message between services holds."""

EXIT_CODES = (
    "Exit codes: 0 success; 1 a negative result (a failed check, a relaxation, a broken chain); "
    "2 refused (wrong usage, a wrong setting, a service that does not answer); 70 a defect in Interlock; 130 interrupted."
)


class Format(StrEnum):
    """Output format of a command."""

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
    """Print a refusal that the block raises, and end the command with its exit code."""
    try:
        yield
    except Refused as refused:
        raise typer.Exit(print_refusal(refused, as_json=output is Format.JSON)) from None


def print_refusal(refused: Refused, *, as_json: bool) -> int:
    """Print a refusal on standard error, or as JSON on standard output, and return the exit code."""
    if as_json:
        error = {"reason": refused.reason, "message": refused.message, "metadata": refused.metadata}
        print_json({"error": error})
    else:
        sys.stderr.write(f"error: {refused.reason}: {refused.message}\n")
        if hint := refused.metadata.get("hint"):
            sys.stderr.write(f"hint: {hint}\n")
    return REFUSED


def outer_fault(error: Exception, arguments: Sequence[str]) -> Refused | None:
    """Return the refusal of what no command foresaw and is no defect: an argument that is no text, a file that cannot be used."""
    if isinstance(error, UnicodeEncodeError) and any(not _is_text(one) for one in arguments):
        return invalid("ARGUMENT_INVALID", "an argument is not UTF-8")
    if isinstance(error, OSError) and error.filename is not None:
        return unavailable("FILE_UNUSABLE", plain(f"{str(error.filename)[:200]}: {error.strerror}"), retry_after_ms=0)
    return None


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def print_defect(error: Exception, *, as_json: bool) -> int:
    """Print that a command failed by a defect of ours, with the places of the code and no value, and return the exit code."""
    frames = [f"{Path(one.filename).name}:{one.lineno}" for one in extract_tb(error.__traceback__)[-PLACES:]]
    hint = f"report it, with {' '.join(frames)}"
    refused = Refused(
        Kind.UNAVAILABLE, "INTERNAL", f"a defect in Interlock ({type(error).__name__})", metadata={"hint": hint}
    )
    print_refusal(refused, as_json=as_json)
    return DEFECT


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, for failures before any command parsed it."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(a in {"-ojson", "--output=json"} or (a in {"-o", "--output"} and b == "json") for a, b in pairs)


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as their widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))


def plain(line: str) -> str:
    """Return a line without characters that could control a terminal (reliability.md A-17)."""
    return "".join(char if char.isprintable() else "?" for char in line)
