"""``interlock dpe``: analyze answers against their facts, in this process, without a server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from google.protobuf.json_format import MessageToDict

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.cli import calibration
from interlock.cli.output import NEGATIVE, OK, Format, Output, print_json
from interlock.domain.errors import Refused, invalid
from interlock.domain.risk.strictness import MOST_FALSE_ALARMS, LabelledVerdict
from interlock.dpe.document import Fact
from interlock.dpe.request import Output as Answer
from interlock.dpe.request import PriorWindow, Request
from interlock.runtime.settings.loading import load

if TYPE_CHECKING:
    from interlock.dpe.pipeline import Pipeline

DEFAULT_IMPORTANCE = 0.5
ACTIVE_LINES = 4

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback()
def dpe() -> None:
    """Split answers into claims and show the evidence for each claim (SPEC-005)."""


@app.command()
def analyze(
    file: Annotated[
        str | None,
        typer.Argument(
            help="JSON file {facts: [{id, content, importance}], query, prompt, domain, prior: [{window_id, text}], response}; "
            "prior has the earlier answers of the session, the oldest first. - is standard input."
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch", help="JSON Lines file with one such object and an id on each line; - is standard input."
        ),
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """Analyze one answer, or one on each line of a file.

    A batch prints {"id", "report"} or {"id", "error"} for each line, in order, and exits with 1 if any line had an
    error.
    """
    if (file is None) == (batch is None):
        raise invalid("USAGE", "give either FILE or --batch FILE")
    if batch is not None:
        raise typer.Exit(asyncio.run(_batch(_lines(batch), print_json)))
    request = parse_request(_object(_text(file or "-")))
    report = asyncio.run(_single(request))
    if output is Format.JSON:
        print_json(report_dict(report))
    else:
        sys.stdout.write(as_text(request.outputs[0].text, report))


@app.command()
def calibrate(
    file: Annotated[
        str,
        typer.Argument(
            help="JSON Lines file with {answer, sources: [text, ...], label: faithful or unfaithful, query} on each line; - is "
            "standard input."
        ),
    ],
    most_false_alarms: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Largest share of faithful answers that may be acted upon.")
    ] = MOST_FALSE_ALARMS,
    output: Output = Format.TEXT,
) -> None:
    """Judge labelled answers of your own, and recommend a strictness.

    Prints, for each setting, the share of the unfaithful answers that it acts on and of the faithful ones, with 95 % intervals.
    At least 30 answers of each label are needed. Exits with 1 when no setting keeps to the share of false alarms.
    """
    rows = [calibration.labelled(_object(line), number) for number, line in enumerate(_lines(file), 1) if line.strip()]
    calibration.enough([faithful for faithful, _ in rows])
    verdicts, refused = asyncio.run(_verdicts([(faithful, parse_request(raw)) for faithful, raw in rows]))
    calibration.enough([one.faithful for one in verdicts])
    told = calibration.as_json(verdicts, most_false_alarms, refused)
    if output is Format.JSON:
        print_json(told)
    else:
        sys.stdout.write(calibration.as_text(verdicts, most_false_alarms, refused))
    raise typer.Exit(OK if told["recommended"] else NEGATIVE)


async def _verdicts(rows: Iterable[tuple[bool, Request]]) -> tuple[list[LabelledVerdict], int]:
    """Judge the rows one after the other; return what the engine says of each, and how many it refused.

    A statement of which it cannot tell costs nothing here, whatever is set: what it would cost is one of the settings compared.
    """
    found: list[LabelledVerdict] = []
    refused = 0
    pipeline = await _opened(dpe_cannot_tell="free")
    try:
        for faithful, request in rows:
            try:
                found.append(calibration.verdict(faithful, await pipeline.analyse(request)))
            except Refused:
                refused += 1
    finally:
        pipeline.close()
    return found, refused


def parse_request(raw: Mapping[str, Any]) -> Request:
    """Return the request in an input object; refused with INPUT_INVALID, which names the wrong field."""
    return Request(
        outputs=(Answer(0, _string(raw, "response", required=True)),),
        facts=tuple(_fact(fact, number) for number, fact in enumerate(_list(raw, "facts"), 1)),
        query=_string(raw, "query"),
        prompt=_string(raw, "prompt"),
        domain=_string(raw, "domain"),
        prior=tuple(_prior(window, number) for number, window in enumerate(_list(raw, "prior"), 1)),
    )


def report_dict(report: dpe_pb2.Report) -> dict[str, Any]:
    """Return a report as JSON with the proto's names. Optional values that were not computed are absent."""
    found: dict[str, Any] = MessageToDict(
        report, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def as_text(answer: str, report: dpe_pb2.Report) -> str:
    """Return the answer with unsupported sentences in numbered brackets, followed by the problems of each."""
    flawed: dict[tuple[int, int], list[str]] = {}
    for claim in report.claims:
        if reasons := _reasons(claim):
            flawed.setdefault((claim.start, claim.end), []).append(f"{claim.text}\n       {'; '.join(reasons)}")
    spans = sorted(flawed)
    marked, at = [], 0
    for number, (start, end) in enumerate(spans, 1):
        marked += [answer[at:start], f"[{number}: ", answer[start:end], "]"]
        at = end
    lines = [*_summary(report), "", "".join([*marked, answer[at:]]), ""]
    lines += [f"  {number}. {claim}" for number, span in enumerate(spans, 1) for claim in flawed[span]]
    lines += [f"  contradiction: {_claim_text(report, c.claim_id)} <> {c.other_text}" for c in report.contradictions]
    lines += [f"  left out ({o.severity}): fact {o.fact_id}" for o in report.omissions]
    return "\n".join(lines).rstrip() + "\n"


def _summary(report: dpe_pb2.Report) -> Iterator[str]:
    level = common_pb2.RiskLevel.Name(report.risk_level).removeprefix("RISK_LEVEL_")
    yield f"risk {level} ({report.composite_score:.2f})"
    if report.HasField("grounding_pct"):
        scores = f"fidelity {report.fidelity_score:.2f}, entailment {report.entailment_score:.2f}"
        yield f"grounded {report.grounding_pct:.0%} of the checked claims, {scores}"
    yield (
        f"fabrications {report.fabrication_count}, distortions {report.distortion_count}, "
        f"contradictions {report.contradiction_count}, omissions {len(report.omissions)}, "
        f"personal data {'yes' if report.gdpr_pii_detected else 'no'}"
    )
    if report.floors or report.amplifiers_applied:
        yield "raised by " + ", ".join([*report.floors, *report.amplifiers_applied])
    skipped = [stage.number for stage in report.stages if stage.status == dpe_pb2.STAGE_STATUS_NOT_RUN]
    if skipped:
        yield f"stages not run: {', '.join(skipped)}"


def _reasons(claim: dpe_pb2.Claim) -> list[str]:
    if claim.attribution in {dpe_pb2.ATTRIBUTION_UNSPECIFIED, dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED}:
        return []
    name = dpe_pb2.Attribution.Name(claim.attribution).removeprefix("ATTRIBUTION_")
    near = f", nearest fact {claim.fact_id}" if claim.fact_id else ""
    reasons = [f"{name}: entailment {claim.entailment:.2f}{near}"]
    reasons += [f"made up: {text}" for text in claim.fabrications]
    reasons += [
        f"{d.type}{f' ({d.slot})' if d.slot else ''}: source {d.source_value!r}, claim {d.claim_value!r}"
        for d in claim.distortions
    ]
    return reasons


def _claim_text(report: dpe_pb2.Report, claim_id: str) -> str:
    return next((claim.text for claim in report.claims if claim.claim_id == claim_id), claim_id)


async def _single(request: Request) -> dpe_pb2.Report:
    pipeline = await _opened()
    try:
        return await pipeline.analyse(request)
    finally:
        pipeline.close()


async def _opened(**changed: str) -> Pipeline:
    from interlock.dpe.wiring import open_pipeline

    return await asyncio.to_thread(open_pipeline, load().model_copy(update=changed))


async def _batch(lines: Iterable[bytes], show: Callable[[Mapping[str, Any]], None]) -> int:
    """Analyze every line, a few at a time, and show the results in order; return the exit code."""
    pipeline = await _opened()
    code = OK
    try:
        async for result in _results(lines, pipeline):
            show(result)
            code = NEGATIVE if "error" in result else code
    finally:
        pipeline.close()
    return code


async def _results(lines: Iterable[bytes], pipeline: Pipeline) -> AsyncIterator[dict[str, Any]]:
    active: deque[asyncio.Task[dict[str, Any]]] = deque()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        active.append(asyncio.create_task(_result(line, number, pipeline)))
        if len(active) >= ACTIVE_LINES:
            yield await active.popleft()
    while active:
        yield await active.popleft()


async def _result(line: bytes, number: int, pipeline: Pipeline) -> dict[str, Any]:
    name: Any = number
    try:
        raw = _object(line)
        name = raw.get("id", number)
        return {"id": name, "report": report_dict(await pipeline.analyse(parse_request(raw)))}
    except Refused as refused:
        return {"id": name, "error": {"reason": refused.reason, "message": refused.message}}


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file; refused with FILE_UNREADABLE before the first line."""
    if path == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield from file
    except OSError as error:
        raise invalid("FILE_UNREADABLE", f"{path}: {error.strerror}") from None


def _text(path: str) -> bytes:
    return b"".join(_lines(path))


def _object(text: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(text.decode())
    except UnicodeDecodeError:
        raise invalid("INPUT_INVALID", "the input is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise invalid("INPUT_INVALID", f"the input is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise invalid("INPUT_INVALID", "the input is not a JSON object")
    return raw


def _string(raw: Mapping[str, Any], key: str, *, required: bool = False) -> str:
    value = raw.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise invalid("INPUT_INVALID", f"{key} must be a string", field=key)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid("INPUT_INVALID", f"{key} holds half a surrogate pair", field=key) from None
    return value


def _list(raw: Mapping[str, Any], key: str) -> list[Any]:
    value = raw.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid("INPUT_INVALID", f"{key} must be a list", field=key)
    return value


def _prior(raw: Any, number: int) -> PriorWindow:
    """Return an earlier answer; a text alone gets its place as its id."""
    if isinstance(raw, str):
        raw = {"text": raw}
    if not isinstance(raw, dict):
        raise invalid("INPUT_INVALID", f"earlier answer {number} must be an object or a text", field="prior")
    return PriorWindow(_string(raw, "window_id") or f"w{number}", _string(raw, "text", required=True))


def _fact(raw: Any, number: int) -> Fact:
    if not isinstance(raw, dict):
        raise invalid("INPUT_INVALID", f"fact {number} must be an object", field="facts")
    importance = raw.get("importance", DEFAULT_IMPORTANCE)
    if isinstance(importance, bool) or not isinstance(importance, int | float):
        raise invalid("INPUT_INVALID", f"importance of fact {number} must be a number", field="facts")
    return Fact(_string(raw, "id") or f"f{number}", _string(raw, "content", required=True), float(importance))
