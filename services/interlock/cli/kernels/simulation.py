"""``interlock kernel simulate``: a recorded trace under other limits and invariants."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import typer

from interlock.cli.kernel_calls import NAME, URL, calls_of
from interlock.cli.output import NEGATIVE, OK, Format, Output, plain, print_json, refusals, table
from interlock.client.kernel.calls import KernelCalls, micros, number
from interlock.domain.errors import invalid
from interlock.domain.kernel import words
from interlock.domain.kernel.simulation import Differs, OtherTerms, Simulated, simulated
from interlock.domain.kernel.state import Resource
from interlock.session.kernel.cel_language import LANGUAGE

Record = tuple[int, str, Mapping[str, Any]]

LIMIT = typer.Option(
    [], "--limit", help="usd=50: another limit of a resource; writer/usd=5: of a child. May be repeated."
)
MIN_COST = typer.Option([], "--min-cost", help="usd=1: another least cost of every action.")
INVARIANT = typer.Option(
    [], "--invariant", help="few='active <= 3': one more blocking invariant, or another of that name."
)
CEL = typer.Option([], "--cel", help="few='active <= 3': the same in CEL.")
WITHOUT = typer.Option([], "--without", help="Name of an invariant that is left out.")
FILE = typer.Option(
    None, "--file", help="Read the trace from a file that `interlock kernel watch NAME --once -o json` wrote.", exists=True, dir_okay=False,
)  # fmt: skip


def simulate(  # noqa: PLR0917 - typer's options
    name: str = NAME,
    limit: list[str] = LIMIT,
    min_cost: list[str] = MIN_COST,
    invariant: list[str] = INVARIANT,
    cel: list[str] = CEL,
    without: list[str] = WITHOUT,
    file: Path | None = FILE,
    url: str = URL,
    output: Output = Format.TEXT,
) -> None:
    """Decide a recorded trace again under other limits. Exit 0: all as it was. 1: something is decided otherwise. 2: refused.

    Agents do what they did, also where something before it was rejected; nothing is asked of the kernel but its trace.
    """
    with refusals(output):
        changes = OtherTerms(
            _amounts(limit), _amounts(min_cost), dict(map(_pair, invariant)), frozenset(without), dict(map(_pair, cel))
        )
        if file is not None:
            records = _read(file)
        else:
            with calls_of(url) as calls:
                records = _fetched(calls, name)
        found = simulated(records, changes, LANGUAGE)
        before = [number for number, _, data in records if "recorded" in data]
    if output is Format.JSON:
        print_json(_told(name, found) | {"recorded_emergencies": before})
    else:
        _print(found, len(before))
    raise typer.Exit(NEGATIVE if found.differs else OK)


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise invalid("KERNEL_CHANGE_INVALID", "a change is written as NAME=VALUE", value=text[:100])
    return name.strip(), value.strip()


def _amounts(texts: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in map(_pair, texts):
        try:
            found[name] = micros(Decimal(value))
        except (InvalidOperation, ValueError, OverflowError):
            raise invalid(
                "KERNEL_AMOUNT_INVALID", "an amount is a number with at most six decimals", value=value[:100]
            ) from None
    return found


def _fetched(calls: KernelCalls, name: str) -> list[Record]:
    records: list[Record] = []
    while page := calls.trace(name, records[-1][0] if records else 0):
        records += map(_record, page)
    return records


def _read(file: Path) -> list[Record]:
    try:
        return [_record(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise invalid(
            "KERNEL_TRACE_INVALID", "the file is not a trace: one record of `watch -o json` on each line"
        ) from None


def _record(told: Mapping[str, Any]) -> Record:
    return int(told["sequence"]), str(told["type"]), dict(json.loads(told["data_json"]))


def _told(name: str, found: Simulated) -> dict[str, Any]:
    return {
        "kernel": name,
        "records": found.records,
        "rejected": [_differs(one) for one in found.differs if not one.approved],
        "approved": [_differs(one) for one in found.differs if one.approved],
        "left_out": list(found.left_out),
        "resources": [
            {"name": one, "recorded": _figures(found.recorded[one]), "simulated": _figures(found.simulated[one])}
            for one in found.recorded
        ],
    }  # fmt: skip


def _differs(one: Differs) -> dict[str, Any]:
    checks = [{"name": check[0], "code": check[2], "words": _words(check)} for check in one.checks]
    return {"sequence": one.sequence, "type": one.type, "action": one.action, "key": one.key, "checks": checks}


def _words(check: Sequence[str]) -> str:
    return "what it speaks of is not there" if check[0] == "asked" else words.words_of(check)


def _figures(one: Resource) -> dict[str, str]:
    names = {"limit": one.limit, "gross": one.gross, "refunded": one.refunded, "remaining": one.left}
    return {f"{name}_micros": str(value) for name, value in names.items()}


def _print(found: Simulated, recorded: int) -> None:
    rejected = [one for one in found.differs if not one.approved]
    lines = [
        f"{found.records} records: {len(rejected)} would have been rejected, {len(found.differs) - len(rejected)} approved"
    ]
    for one in found.differs:
        why = "; ".join(map(_words, one.checks))
        lines.append(
            f"{one.sequence:>6}  {'approved' if one.approved else 'REJECTED'}  {one.action or one.type}  {one.key}  {why}".rstrip()
        )
    if found.left_out:
        lines.append(f"not decided again: {len(found.left_out)} records")
    if recorded:
        lines.append(f"recorded while the kernel could not be reached: {recorded} emergency actions")
    rows: list[tuple[str, ...]] = [("resource", "", "limit", "spent", "refunded", "left")]
    for name in found.recorded:
        rows += [_row(name, "recorded", found.recorded[name]), _row(name, "simulated", found.simulated[name])]
    for line in (*lines, *table(rows)):
        typer.echo(plain(line).rstrip())


def _row(name: str, what: str, one: Resource) -> tuple[str, ...]:
    return name, what, *(str(number(each)) for each in (one.limit, one.gross, one.refunded, one.left))
