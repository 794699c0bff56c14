"""``interlock policy lint``, ``explain``, ``diff`` and ``test``: a policy judged and tried without a mesh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from interlock.cli.output import NEGATIVE, Format, Output, plain, print_json, print_refusal, table
from interlock.cli.policy.texts import TEXT, caret, content, given, read, told, understood
from interlock.domain.errors import Refused
from interlock.domain.policy.directives import canonical
from interlock.domain.policy.policy_order import Tightness
from interlock.domain.policy.workbench.cases import Case, Result, read_cases, run
from interlock.domain.policy.workbench.difference import difference
from interlock.domain.policy.workbench.explain import MEANING, WITHOUT_DIRECTIVE, AtRisk, at_each_risk, sentences
from interlock.domain.policy.workbench.lint import lint as remarks_of
from interlock.domain.policy.workbench.rules import Gravity
from interlock.runtime.settings.strict_yaml import parse_yaml

BEFORE = typer.Argument(help="The policy as it is, or @FILE.")
AFTER = typer.Argument(help="The policy as it would be, or @FILE.")
FILE = typer.Argument(help="YAML file of cases (docs/policies.md).")
POLICY = typer.Option("", "--policy", help="Policy to try, or @FILE, instead of the one in the file.")
NO_REVIEWER = typer.Option(
    False, "--no-reviewer", help="As where no reviewer is registered: what would be held is halted."
)

_RISK = ("risk", "budget above 0.50", "budget at most 0.50")


def lint(text: str = TEXT, output: Output = Format.TEXT) -> None:
    """Find what is legal and hardly meant: a directive without effect, a bound that no answer breaks, a trap.

    Exit 0: nothing, or notes alone. 1: warnings. 2: the policy is malformed.
    """
    text = given(text, output)
    found = understood(text, "", output, remarks_of)
    warnings = sum(one.weight is Gravity.WARNING for one in found)
    if output is Format.JSON:
        remarks = [
            {"code": one.code, "weight": str(one.weight), "directive": one.directive, "message": one.says, "position": one.position}
            for one in found
        ]  # fmt: skip
        print_json({"warnings": warnings, "remarks": remarks})
    else:
        for one in found:
            typer.echo(": ".join(filter(None, (str(one.weight), one.directive, one.says))))
            for line in caret(text, one.position) if one.position is not None else ():
                typer.echo(line)
        typer.echo(_counted(warnings, len(found) - warnings))
    if warnings:
        raise typer.Exit(NEGATIVE)


def _counted(warnings: int, notes: int) -> str:
    counts = [
        f"{count} {name}{'' if count == 1 else 's'}"
        for count, name in ((warnings, "warning"), (notes, "note"))
        if count
    ]
    return ", ".join(counts) or "nothing to remark"


def explain(text: str = TEXT, no_reviewer: bool = NO_REVIEWER, output: Output = Format.TEXT) -> None:
    """Say in a sentence what each directive does, and what happens to an answer at each risk level.

    Exit 0: explained. 2: the policy is malformed.
    """
    policy = read(given(text, output), "", output)
    said, levels = sentences(policy), at_each_risk(policy, reviewed=not no_reviewer)
    if output is Format.JSON:
        directives = [{"directive": one.directive, "does": one.does} for one in said]
        print_json(
            {"canonical_text": canonical(policy), "directives": directives, "always": list(WITHOUT_DIRECTIVE), "at_risk": [_level(one) for one in levels]}
        )  # fmt: skip
        return
    for line in table([(one.directive, one.does) for one in said]):
        typer.echo(line.rstrip())
    typer.echo("\nAlways:")
    for each in WITHOUT_DIRECTIVE:
        typer.echo(f"  {each}")
    typer.echo("\nAn answer in which nothing but its risk is found:")
    for line in table([_RISK, *((one.risk.name, one.closed, one.half_open) for one in levels)]):
        typer.echo(f"  {line}".rstrip())
    for name, means in MEANING.items():
        if any(name in one.closed + one.half_open for one in levels):
            typer.echo(f"  {name}: {means}")


def _level(one: AtRisk) -> dict[str, str]:
    return {"risk": one.risk.name, "breaker_closed": one.closed, "breaker_half_open": one.half_open}


def diff(before: str = BEFORE, after: str = AFTER, output: Output = Format.TEXT) -> None:
    """Show what changes from one policy to another: each directive, stricter or looser, and each risk level.

    Exit 0: nothing is looser. 1: something is. 2: one policy is malformed.
    """
    found = difference(read(given(before, output), "first", output), read(given(after, output), "second", output))
    if output is Format.JSON:
        changes = [{**one._asdict(), "direction": str(one.direction)} for one in found.changes]
        moved = [{"before": _level(one.before), "after": _level(one.after)} for one in found.moved]
        print_json({"loosens": found.loosens, "changes": changes, "at_risk": moved})
    else:
        rows = [
            (_sign(one.direction), one.directive, one.before or "-", one.after or "-", _way(one.direction))
            for one in found.changes
        ]
        for line in table([("", "directive", "before", "after", ""), *rows]) if rows else ("no directive differs",):
            typer.echo(line.rstrip())
        for line in _moved([(one.before, one.after) for one in found.moved]):
            typer.echo(line.rstrip())
    if found.loosens:
        raise typer.Exit(NEGATIVE)


def _sign(direction: Tightness) -> str:
    return {Tightness.STRICTER: "+", Tightness.LOOSER: "-", Tightness.MIXED: "!"}.get(direction, "=")


def _way(direction: Tightness) -> str:
    return {Tightness.SAME: "the same in effect", Tightness.MIXED: "neither stricter nor looser"}.get(
        direction, str(direction)
    )


def _moved(levels: Sequence[tuple[AtRisk, AtRisk]]) -> Iterator[str]:
    if not levels:
        return
    yield "\nAn answer in which nothing but its risk is found:"
    rows = [("risk", "budget", "before", "after")]
    for before, after in levels:
        if before.closed != after.closed:
            rows.append((before.risk.name, "above 0.50", before.closed, after.closed))
        if before.half_open != after.half_open:
            rows.append((before.risk.name, "at most 0.50", before.half_open, after.half_open))
    for line in table(rows):
        yield f"  {line}"


def run_cases(file: Path = FILE, policy: str = POLICY, output: Output = Format.TEXT) -> None:
    """Run the cases of a YAML file: an answer's figures in, the expected decision out.

    Exit 0: all as expected. 1: some are not; each is shown with what was decided. 2: the file cannot be used.
    """
    results = [run(case) for case in _cases(file, policy, output)]
    failed = [one for one in results if one.wrong]
    if output is Format.JSON:
        print_json(
            {"passed": len(results) - len(failed), "failed": len(failed), "cases": [_result(one) for one in results]}
        )
    else:
        for one in results:
            typer.echo(plain(f"{'FAILED' if one.wrong else 'ok':<6}  {one.case.name}"))
            for line in _differences(one):
                typer.echo(plain(line))
        typer.echo(f"\n{len(results) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise typer.Exit(NEGATIVE)


def _cases(file: Path, policy: str, output: Format) -> list[Case]:
    other = read(given(policy, output), "", output) if policy else None
    try:
        return read_cases(parse_yaml(content(file), file, secret=False), other)
    except Refused as refused:
        text = refused.metadata.pop("text", None)
        code = (
            print_refusal(refused, as_json=output is Format.JSON) if text is None else told(refused, text, "", output)
        )
        raise typer.Exit(code) from None


def _result(one: Result) -> dict[str, object]:
    return {"name": one.case.name, "passed": not one.wrong, "wrong": list(one.wrong), "expected": dict(one.case.expect), "decided": dict(one.decided)}  # fmt: skip


def _differences(one: Result) -> Iterator[str]:
    for name in one.wrong:
        yield f"        {name}: expected {_shown(one.case.expect[name])}, decided {_shown(one.decided[name])}"
    if one.wrong and "broken" not in one.wrong and one.decided["broken"]:
        yield f"        broken: {_shown(one.decided['broken'])}"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return str(value).lower() if isinstance(value, bool) else str(value) or "none"
