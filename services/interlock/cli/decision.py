"""``interlock decision``: what was decided, why, and whether it is decided the same way again (DEC-6)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import typer
from google.protobuf.json_format import MessageToDict

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.cli.certification.command import certify
from interlock.cli.certification.reference import agent
from interlock.cli.decision_report.page import page
from interlock.cli.output import LARGEST, NEGATIVE, OK, Format, Output, plain, print_json, refusals, table
from interlock.domain.decision.replay import replayed
from interlock.domain.errors import invalid
from interlock.oversight.runs.run import run_of
from interlock.runtime.rpc.errors import from_rpc_error
from interlock.runtime.rpc.places import address
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

app = typer.Typer(
    help="List, show, report, replay and watch the decisions of an experiment; serve and certify agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.command()(agent)
app.command()(certify)

EXPERIMENT = typer.Argument(help="Name of the experiment, under the key in OPENAI_API_KEY.")
CYCLE = typer.Argument(help="Number of the cycle.", min=1, max=LARGEST)
AT = typer.Option("", "--at", help="The decision service, HOST:PORT. Default: decision_port on this machine.")
CA = typer.Option(None, "--ca", help="PEM file of the authority of its certificate. Default: plain text.")
AFTER = typer.Option(0, "--after", help="Cycles after this one.", min=0, max=LARGEST)
FILE = typer.Option(Path("decisions.html"), "--file", "-f", help="File to write; one that is there is replaced.")
LIMIT = typer.Option(100, "--limit", help="Most to list.", min=1, max=500)
SOURCE = typer.Argument(help="A file that `show -o json` wrote, or the name of an experiment.")
REPLAYED = typer.Argument(None, help="Number of the cycle of an experiment.", min=1, max=LARGEST)

TYPES = typer.Option([], "--type", help="Only signals of this type; may be given again.")
TOKEN = typer.Option("", "--after", help="Token that an earlier watch printed. Default: the oldest that is held.")
SECONDS = typer.Option(0.0, "--seconds", help="How long. Default: until Ctrl-C.", min=0)

TIMEOUT_S, WATCH_S = 10.0, 3_600.0
_COLUMNS = ("cycle", "time", "outcome", "chosen", "decision")

Call = Callable[[Any, Sequence[tuple[str, str]]], Awaitable[Any]]


@app.command("list")
def list_decisions(  # noqa: PLR0917 - the options of a command
    experiment: str = EXPERIMENT,
    after: int = AFTER,
    limit: int = LIMIT,
    at: str = AT,
    ca: Path | None = CA,
    output: Output = Format.TEXT,
) -> None:
    """List decided cycles. Exit 0: listed. 2: there is no such experiment, or no answer."""
    request = decision_pb2.ListDecisionsRequest(experiment=experiment, after=after, limit=limit)
    with refusals(output):
        found = _asked(at, ca, lambda stub, key: stub.ListDecisions(request, metadata=key, timeout=TIMEOUT_S)).decisions
    if output is Format.JSON:
        names = ("cycle", "decision_id", "outcome", "chosen", "trace_hash", "timestamp")
        print_json([{name: getattr(one, name) for name in names} for one in found])
        return
    rows = [(str(one.cycle), one.timestamp, one.outcome, one.chosen or "-", one.decision_id) for one in found]
    _print(table([_COLUMNS, *rows]))


@app.command()
def show(
    experiment: str = EXPERIMENT,
    cycle: int = CYCLE,
    at: str = AT,
    ca: Path | None = CA,
    output: Output = Format.TEXT,
) -> None:
    """Show a sealed trace. Exit 0: shown. 2: there is no such cycle, or no answer."""
    with refusals(output):
        definition, trace = _got(experiment, cycle, at, ca)
    if output is Format.JSON:
        print_json({"definition": definition, "trace": trace})
    else:
        _print(_lines(json.loads(trace)))


@app.command()
def report(  # noqa: PLR0917 - the options of a command
    experiment: str = EXPERIMENT,
    file: Path = FILE,
    after: int = AFTER,
    limit: int = LIMIT,
    at: str = AT,
    ca: Path | None = CA,
    output: Output = Format.TEXT,
) -> None:
    """Write a run as one HTML file: signals on a time line, proposals, guards, decisions, and whether they replay.

    The file has no scripts and loads nothing. Exit 0: written. 1: written, and a cycle does not replay. 2: no such experiment, or no answer.

    Example: interlock decision report search --file search.html
    """
    request = decision_pb2.ListDecisionsRequest(experiment=experiment, after=after, limit=limit)

    async def sealed(stub: Any, key: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        found = []
        for one in (await stub.ListDecisions(request, metadata=key, timeout=TIMEOUT_S)).decisions:
            wanted = decision_pb2.GetDecisionRequest(experiment=experiment, cycle=one.cycle)
            got = await stub.GetDecision(wanted, metadata=key, timeout=TIMEOUT_S)
            found.append((got.definition_json, got.trace_json))
        return found

    with refusals(output):
        run = run_of(experiment, _asked(at, ca, sealed))
        _write(file, page(run))
    if output is Format.JSON:
        print_json({"file": str(file), "cycles": len(run.cycles), "replay": run.same})
    else:
        _print([f"{file}: {len(run.cycles)} cycles, {run.same} of them replay to the byte"])
    raise typer.Exit(OK if run.same == len(run.cycles) else NEGATIVE)


def _write(file: Path, text: str) -> None:
    """Write a page. Refused with DECISION_FILE_INVALID where the file cannot be written."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise invalid("DECISION_FILE_INVALID", f"{file}: {type(error).__name__}; name a file with --file") from None


@app.command()
def replay(
    source: str = SOURCE,
    cycle: int | None = REPLAYED,
    at: str = AT,
    ca: Path | None = CA,
    output: Output = Format.TEXT,
) -> None:
    """Decide a cycle again, here. Exit 0: every byte is the same. 1: it parts, and where. 2: there is no trace.

    Examples: interlock decision replay search 7 | interlock decision show search 7 -o json > t.json; interlock decision replay t.json
    """
    with refusals(output):
        definition, trace = _read(Path(source)) if cycle is None else _got(source, cycle, at, ca)
    found = replayed(definition, trace)
    if output is Format.JSON:
        told = {"same": found.is_same, "differs_at": found.differs_at}
        print_json({**told, "recorded": found.recorded, "replayed": found.replayed})
    elif found.is_same:
        _print([f"the same, {len(trace)} bytes"])
    else:
        _print([f"it parts at {found.differs_at}", f"  recorded  {found.recorded}", f"  replayed  {found.replayed}"])
    raise typer.Exit(OK if found.is_same else NEGATIVE)


@app.command()
def watch(  # noqa: PLR0917 - the options of a command
    experiment: str = EXPERIMENT,
    kinds: list[str] = TYPES,
    after: str = TOKEN,
    seconds: float = SECONDS,
    at: str = AT,
    ca: Path | None = CA,
    output: Output = Format.TEXT,
) -> None:
    """Show the signals of an experiment as they come, and what was lost of them. Exit 0: time is over, or Ctrl-C. 2: no answer.

    With -o json one line for each page: token, gap, signals. The last token resumes with --after.

    Examples: interlock decision watch search | interlock decision watch search --type metric_plateau --seconds 10 -o json
    """
    request = decision_pb2.SubscribeRequest(experiment=experiment, types=kinds, after=after)

    token = after

    async def follow(stub: Any, key: Sequence[tuple[str, str]]) -> None:
        nonlocal token
        while True:
            request.after = token
            try:
                async for page in stub.Subscribe(request, metadata=key, timeout=seconds or WATCH_S):
                    token = page.token
                    _print_page(page, output)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise
                if seconds:
                    return

    with refusals(output), contextlib.suppress(KeyboardInterrupt):
        _asked(at, ca, follow)
    if output is Format.TEXT and token:
        _print([f"go on with --after {token}"])


def _print_page(page: decision_pb2.SubscribeResponse, output: Format) -> None:
    if output is Format.JSON:
        told = MessageToDict(page, preserving_proto_field_name=True)
        typer.echo(json.dumps({"token": page.token, "gap": told.get("gap"), "signals": told.get("signals", [])}))
        return
    if page.HasField("gap"):
        gone = f"{page.gap.count} of {page.gap.from_sequence} to {page.gap.to_sequence}"
        _print([f"lost    {'the whole bus' if page.gap.restarted else gone}"])
    for one in page.signals:
        cycle = f"cycle {one.cycle}" if one.cycle else "-"
        row = (str(one.sequence), one.signal.type, one.signal.source, f"{one.signal.confidence:g}", cycle)
        _print(["  ".join((*row, one.signal.payload_json))])


def _read(path: Path) -> tuple[str, str]:
    """Return definition and trace of a file. Refused with DECISION_FILE_INVALID."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        definition, trace = told["definition"], told["trace"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path}: {type(error).__name__}; give a file of `interlock decision show -o json`, or a cycle"
        raise invalid("DECISION_FILE_INVALID", message) from None
    return str(definition), str(trace)


def _got(experiment: str, cycle: int, at: str, ca: Path | None) -> tuple[str, str]:
    request = decision_pb2.GetDecisionRequest(experiment=experiment, cycle=cycle)
    found = _asked(at, ca, lambda stub, key: stub.GetDecision(request, metadata=key, timeout=TIMEOUT_S))
    return found.definition_json, found.trace_json


def _asked(at: str, ca: Path | None, call: Call) -> Any:
    """Return the answer of the decision service to the caller of OPENAI_API_KEY. Its refusals are raised."""
    settings = load()
    try:
        credentials = grpc.ssl_channel_credentials(ca.read_bytes()) if ca else None
    except OSError as error:
        raise invalid("DECISION_CA_UNREADABLE", f"{ca}: {type(error).__name__}") from None
    key = os.environ.get("OPENAI_API_KEY", "")
    metadata = [("authorization", f"Bearer {key}")] if key else []
    target = at or address("127.0.0.1", settings.decision_port)
    return asyncio.run(_answer(target, credentials, settings, call, metadata))


async def _answer(
    target: str,
    credentials: grpc.ChannelCredentials | None,
    settings: Settings,
    call: Call,
    metadata: Sequence[tuple[str, str]],
) -> Any:
    options = [("grpc.max_receive_message_length", settings.max_message_bytes)]
    channel = (
        grpc.aio.secure_channel(target, credentials, options=options)
        if credentials
        else grpc.aio.insecure_channel(target, options=options)
    )
    async with channel:
        try:
            return await call(DecisionServiceStub(channel), metadata)
        except grpc.aio.AioRpcError as error:
            refused = from_rpc_error(error, "decision")
            if refused.reason in {"DECISION_UNAVAILABLE", "DEADLINE_EXCEEDED"}:
                refused.metadata["hint"] = (
                    f"nothing answers on {target}: start it with `interlock serve decision`, or name it with --at"
                )
            raise refused from None


def _lines(trace: Mapping[str, Any]) -> Iterator[str]:
    yield f"cycle {trace['cycle']}  {trace['decision_id']}  {trace['outcome']}"
    for one in trace["agents"]:
        status = f"{one['status_before']} -> {one['status_after']}"
        faults = " ".join(f"{name} x{often}" for name, often in one["faults"].items())
        yield f"  agent     {one['agent']}  {one['arrival']}  {status}  {one['spoke']} spoke  {one['fault']} {faults}".rstrip()
    yield from (f"  signal    {one}" for one in trace["signals"])
    yield from (f"  signal    {one['source']} {one['type']}: {one['reason']}" for one in trace["signals_rejected"])
    for one in trace["proposals_considered"]:
        place = f"{one['agent']}/{one['id']}"
        score = trace["scores"].get(place)
        shown = f"  score {score / 1_000_000:g}" if score is not None else ""
        yield f"  proposal  {place}  {one['action_type']}  {one['risk_level']}  {one['confidence_micros'] / 1_000_000:g}{shown}  {one['rationale']}"
    yield from (f"  guard     {line}" for line in trace["guardrail_checks"])
    yield from (
        f"  rejected  {one['agent']}/{one['proposal_id']}  {one['outcome']}  {one['reason']}"
        for one in trace["rejected"]
    )
    yield f"  decided   {trace['outcome']}  {json.dumps(trace['final_parameters'])}"


def _print(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        typer.echo(plain(line).rstrip())
