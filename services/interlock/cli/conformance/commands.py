"""``interlock conformance``: the values in use, the values that the specification fixes, and its test vectors.

SPEC-005 §16.3 and §17 require the weights and factors in the conformance report of SPEC-014 §3, and SPEC-014 §5 defines the
statement that a product publishes. This command prints all of it from the installed code and models.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlock.cli.output import NEGATIVE, OK, Format, Output, print_json
from interlock.domain.budget import Decrements, Micros, as_decimal, micros
from interlock.domain.conformance import carried, requirements
from interlock.domain.errors import invalid
from interlock.domain.policy import quality
from interlock.domain.policy.quality import QualityWeights
from interlock.domain.risk.composite import Calibration, Floor
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from interlock.cli.conformance.vectors import VectorResult

LEVELS = ("basic", "standard", "full")

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback()
def conformance_command() -> None:
    """Show the conformance of this installation to the specification (SPEC-014)."""


@app.command()
def report(
    as_json: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False,
    as_text: Annotated[bool, typer.Option("--text", help="Text, regardless of -o.")] = False,
    only: Annotated[
        str, typer.Option("--only", help="Run only the vectors whose id matches this pattern, such as 'TV-02'.")
    ] = "",
    output: Output = Format.TEXT,
) -> None:
    """Print weights, factors, thresholds, models and hashes, and run the test vectors of SPEC-014 §2.

    The vectors run through a temporary mesh of this installation, on free ports and with its state in a temporary folder.
    Exit 0: everything passed or does not apply. 1: a vector or a normative check failed.
    """
    from interlock.cli.conformance.vectors import run_all

    if as_json and as_text:
        raise invalid("USAGE", "give either --json or --text")
    shown = Format.JSON if as_json else Format.TEXT if as_text else output
    try:
        chosen = re.compile(only)
    except re.error as error:
        raise invalid("USAGE", f"--only is not a valid pattern: {error}") from None
    settings = load()
    found = {**assembled(settings, run_all(settings, chosen)), "only": only}
    if shown is Format.JSON:
        print_json(found)
    else:
        typer.echo("\n".join(lines(found)))
    if code := exit_code(found):
        raise typer.Exit(code)


def exit_code(found: Mapping[str, Any]) -> int:
    """Return 0 when nothing failed, and 1 otherwise."""
    return NEGATIVE if found["failed"] else OK


def assembled(settings: Settings, results: Sequence[VectorResult]) -> dict[str, Any]:
    """Return the whole report as JSON, with the results of the vectors."""
    calibration, weights = Calibration(), QualityWeights()
    decrements = Decrements(
        micros(settings.decrement_low), micros(settings.decrement_medium), micros(settings.decrement_high),
        micros(settings.decrement_critical),
    )  # fmt: skip
    checks = [asdict(check) for check in requirements.checks(calibration, weights, decrements)]
    vectors = [asdict(result) for result in results]
    failed = [one["demand"] for one in checks if not one["met"]]
    failed += [one["test_id"] for one in vectors if one["outcome"] == "fail"]
    return {
        "product": "Interlock",
        "version": version("interlock"),
        "protocol_version": "3.0.0",
        "test_suite": "CRP-SPEC-014 3.0.0 §2, as printed",
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        **configuration(settings, calibration, weights, decrements),
        "level_claimed": carried.claimed(),
        "requirements": [{**asdict(row), "carried": row.carried} for row in carried.REQUIREMENTS],
        "fields": {field: carried.use_of(field) for field in carried.FIELDS},
        "fields_not_applicable": dict(carried.NOT_APPLICABLE),
        "checks": checks,
        "vectors": vectors,
        "tally": tally(vectors),
        "certification": certification(vectors),
        "failed": failed,
    }


def configuration(
    settings: Settings, calibration: Calibration, weights: QualityWeights, decrements: Decrements
) -> dict[str, Any]:
    """Return the values in use. SPEC-005 §16.3 and §17 require that they are documented and published."""
    from interlock.dpe.servicer import describe

    described = describe(calibration, (), weights=weights, method=settings.dpe_attribution)
    return {
        "weights": asdict(calibration.weights),
        "amplifiers": {amplifier.value: factor for amplifier, factor in calibration.factors.items()},
        "thresholds": dict(sorted(described.thresholds.items())),
        "floors": {"score": calibration.floor, "findings": [floor.value for floor in Floor]},
        "quality_weights": asdict(weights),
        "tier_caps": {tier.value: bound for tier, bound in quality.TIER_BOUNDS},
        "decrements": {
            "LOW": as_decimal(decrements.low), "MEDIUM": as_decimal(decrements.medium),
            "HIGH": as_decimal(decrements.high), "CRITICAL": as_decimal(decrements.critical),
        },
        "budget_bands": {name: as_decimal(Micros(most)) for name, most in requirements.BUDGET_BANDS.items()},
        "attribution_method": "cosine" if settings.dpe_attribution == "cosine" else "nli+values",
        "models": _models(settings),
    }  # fmt: skip


def _models(settings: Settings) -> list[dict[str, str]]:
    from interlock.dpe.inference.models import PARSER, check, manifest

    folders = {
        "nli": settings.nli_model_dir, "embed": settings.embed_model_dir, "ner": settings.ner_model_dir, PARSER: None,
    }  # fmt: skip
    found = []
    for slot, folder in folders.items():
        one = manifest(slot, folder)
        check(one)  # the hash of the installed file, not only the hash in a list
        runtime = "triton" if settings.triton_url and slot != PARSER else "embedded"
        found.append(
            {"slot": slot, "name": one.name, "version": one.version, "hash": one.hash, "licence": one.licence,
             "runtime": runtime}
        )  # fmt: skip
    return found


def tally(vectors: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return per level how many vectors passed, failed and do not apply."""
    counts = {level: Counter(one["outcome"] for one in vectors if one["level"] == level) for level in LEVELS}
    return {
        level: {outcome: found[outcome] for outcome in ("pass", "fail", "not applicable")}
        for level, found in counts.items()
    }


def certification(vectors: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return per level of SPEC-014 §3.2 the vectors, of it and the levels below, that prevent its claim."""
    return {
        level: [one["test_id"] for one in vectors if one["level"] in LEVELS[: number + 1] and one["outcome"] != "pass"]
        for number, level in enumerate(LEVELS)
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the report for people, in the order of SPEC-014 §5's statement."""
    yield f"Interlock {found['version']}, conformance with CRP {found['protocol_version']}, {found['date']}"
    yield f"test suite: {found['test_suite']}"
    if found.get("only"):
        yield f"NOT THE WHOLE SUITE: only vectors that match {found['only']!r} were run"
    for level, counts in found["tally"].items():
        total = counts["pass"] + counts["fail"]
        aside = f", {counts['not applicable']} not applicable" if counts["not applicable"] else ""
        yield f"  {level:<9} {counts['pass']}/{total} passed{aside}"
    yield "a level of §3.2 requires every vector of it and of the levels below; only its operator can give a certificate"
    for level, kept in found["certification"].items():
        yield f"  {level:<9} {'prevented by ' + ', '.join(kept) if kept else 'every vector passes'}"
    yield ""
    for title, key in (
        ("composite weights (SPEC-005 §16)", "weights"), ("amplifier factors (§17)", "amplifiers"),
        ("quality weights (§18.2)", "quality_weights"), ("tier caps, least score (§18.4)", "tier_caps"),
        ("thresholds", "thresholds"), ("decrements (SPEC-012 §2.2)", "decrements"),
        ("budget bands (SPEC-012 §2.3)", "budget_bands"),
    ):  # fmt: skip
        yield title
        yield from (f"  {name:<34} {_number(value)}" for name, value in found[key].items())
    yield f"floor {found['floors']['score']:.2f} for {', '.join(found['floors']['findings'])}"
    yield f"attribution method: {found['attribution_method']}"
    yield "models"
    yield from (
        f"  {one['slot']:<6} {one['name']} {one['version']}, {one['runtime']}  {one['hash']}" for one in found["models"]
    )
    yield ""
    yield "values that the specification fixes"
    yield from (
        f"  {'met ' if one['met'] else 'FAIL'}  {one['demand']} ({one['source']}): {one['found']}"
        for one in found["checks"]
    )
    yield ""
    yield f"requirements of SPEC-014 §1; level claimed: {found['level_claimed']}"
    for row in found["requirements"]:
        yield f"  {row['level']:<9} {'carried    ' if row['carried'] else 'NOT CARRIED'} {row['what']} ({row['source']})"
        yield f"            {row['test'] or row['why_not']}"
    yield "header fields of SPEC-002"
    yield from (f"  {field:<34} {use}" for field, use in found["fields"].items())
    yield from (f"  {field:<34} {why}" for field, why in found["fields_not_applicable"].items())
    yield ""
    yield "test vectors"
    for one in found["vectors"]:
        yield f"  {one['test_id']}  {one['outcome']:<14} {one['description']}"
        yield from (f"          {note}" for note in one["notes"])
    yield ""
    yield f"FAILED: {', '.join(found['failed'])}" if found["failed"] else "everything passed or does not apply"


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
