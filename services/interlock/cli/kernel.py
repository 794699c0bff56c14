"""``interlock kernel``: what agents may do, asked at a sidecar under the caller's own key (KRN-1)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

import typer

from interlock.cli.kernel_calls import NAME, URL, calls_of, repeatable
from interlock.cli.kernels.emergencies import emergencies, recorded_before, recorded_line
from interlock.cli.kernels.simulation import simulate
from interlock.cli.output import NEGATIVE, OK, Format, Output, plain, print_json, refusals, table
from interlock.client.kernel.calls import KernelCalls, number, value_of

app = typer.Typer(
    help="Describe a kernel, try and execute its actions, watch its trace, stop it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

ACTION = typer.Argument(help="Id of a registered action.")
KEY = typer.Option(
    "",
    "--key",
    help="Idempotency key. Default: a new one; it is printed, without an answer too, so that the call can be repeated.",
)
AFTER = typer.Option(0, "--after", help="Number of the last record that is known.", min=0)
ONCE = typer.Option(default=False, help="End after the records that are there.")

app.command()(simulate)
app.command()(emergencies)

WATCHED_EVERY_S = 0.5
_PERMITTED = "P"
"""State of an execution that is permitted and not settled, as a kernel's records have it."""
_RESOURCES = ("resource", "limit", "spent", "refunded", "leased", "left", "")


@app.command()
def describe(name: str = NAME, url: str = URL, output: Output = Format.TEXT) -> None:
    """Show resources, those of children too, state, invariants and actions. Exit 0: shown. 2: there is no such kernel, or no answer."""
    with refusals(output), calls_of(url) as calls:
        shown = calls.describe(name)
    if output is Format.JSON:
        print_json(shown)
        return
    rows = [_RESOURCES, *(_resource(one) for one in shown["resources"])]
    rows += [_resource(one, child) for child in shown["children"] for one in child["resources"]]
    state = [f"  {name} = {value_of(value)!r}" for name, value in sorted(shown["state"].items())]
    rules = [
        f"  {one['name']}: {one['expression'] or one['cel'] or 'predicate of the callers'}"
        for one in shown["definition"]["invariants"]
    ]
    actions = [f"  {one['id']}" for one in shown["definition"]["actions"]]
    stopped = "  STOPPED" if shown["stopped"] else ""
    head = f"{name}  {shown['kernel_id']}  version {shown['version']}  steps {shown['steps']}{stopped}"
    _print([head, *table(rows), "state", *state, "invariants", *rules, "actions", *actions])


@app.command()
def evaluate(name: str = NAME, action: str = ACTION, url: str = URL, output: Output = Format.TEXT) -> None:
    """Try an action; nothing is committed. Exit 0: it would be approved. 1: rejected. 2: refused."""
    with refusals(output), calls_of(url) as calls:
        told = calls.post(name, "evaluate", {"action": action})
    raise typer.Exit(_verdict(told, told["verdict"], output))


@app.command()
def execute(
    name: str = NAME,
    action: str = ACTION,
    key: str = KEY,
    url: str = URL,
    output: Output = Format.TEXT,
) -> None:
    """Check, charge and commit an action. Exit 0: done. 1: rejected. 2: refused, or no answer: repeat it under its key."""
    key = key or uuid.uuid4().hex
    with refusals(output), repeatable(key), calls_of(url) as calls:
        told = calls.post(name, "execute", {"action": action, "key": key})
    raise typer.Exit(_verdict({**told, "key": key}, told["verdict"], output))


@app.command()
def stop(  # noqa: PLR0917 - typer reads the options from it
    name: str = NAME,
    action: str = typer.Argument(help="Id of a registered emergency action."),
    child: str = typer.Option("", "--child", help="Stop this child with all below it; its siblings go on."),
    key: str = KEY,
    url: str = URL,
    output: Output = Format.TEXT,
) -> None:
    """Do an emergency action, and permit nothing more, for good. Exit 0: stopped. 2: refused, or no answer: repeat it under its key.

    Where the kernel cannot be reached the sidecar records it, says so, and stops the kernel for all that come through it.
    """
    key = key or uuid.uuid4().hex
    with refusals(output), repeatable(key), calls_of(url) as calls:
        told = calls.post(name, "emergency", {"action": action, "stop": True, "child": child, "key": key})
    raise typer.Exit(_verdict({**told, "key": key}, told["verdict"], output))


@app.command()
def watch(
    name: str = NAME,
    after: int = AFTER,
    once: bool = ONCE,
    url: str = URL,
    output: Output = Format.TEXT,
) -> None:
    """Follow the sealed trace; --after resumes it. Exit 0: ended by --once. 2: there is no such kernel, or no answer."""
    with refusals(output), calls_of(url) as calls:
        while True:
            page = calls.trace(name, after)
            for record in page:
                after = int(record["sequence"])
                if output is Format.JSON:
                    print_json(record)
                else:
                    _print([_record(record)])
            if not page:
                if once:
                    return
                time.sleep(WATCHED_EVERY_S)


@app.command()
def compensations(name: str = NAME, url: str = URL, output: Output = Format.TEXT) -> None:
    """Show what sagas left to be made up for. Exit 0: nothing needs a person. 1: something does. 2: no such kernel, or no answer."""
    with refusals(output), calls_of(url) as calls:
        found = calls.describe(name)["compensations"]
    if output is Format.JSON:
        print_json(found)
    else:
        rows = [("step", "of", "by", "attempts", ""), *(_compensation(one) for one in found)]
        _print([*table(rows)] if found else ["nothing is to be made up for"])
    raise typer.Exit(NEGATIVE if any(one["stuck"] for one in found) else OK)


@app.command()
def settle(
    name: str = NAME,
    step: str = typer.Argument(help="Key of the step, as `compensations` shows it."),
    again: bool = typer.Option(default=False, help="Try it again; without, a person has made up for it."),
    url: str = URL,
    output: Output = Format.TEXT,
) -> None:
    """Settle a compensation that is stuck. Exit 0: settled. 1: its effects would break an invariant. 2: refused."""
    outcome = "OUTCOME_RETRY" if again else "OUTCOME_DONE"
    with refusals(output), calls_of(url) as calls:
        body = {"execution": step, "outcome": outcome, "key": uuid.uuid4().hex}
        told = calls.post(name, "settle-compensation", body)
    raise typer.Exit(_verdict(told, told["verdict"], output))


@app.command()
def permits(name: str = NAME, url: str = URL, output: Output = Format.TEXT) -> None:
    """Show permits that nobody settled; they count as done. Exit 0: there is none. 1: there are. 2: no such kernel, or no answer.

    A call that is under way has one too: settle what is older than any call can be.
    """
    with refusals(output), calls_of(url) as calls:
        found = _open_permits(calls, name)
    if output is Format.JSON:
        print_json(found)
    else:
        rows = [
            ("permit", "action", "since", "reserved"),
            *(tuple(str(value) for value in one.values()) for one in found),
        ]
        _print([*table(rows)] if found else ["every permit is settled"])
    raise typer.Exit(NEGATIVE if found else OK)


@app.command(name="settle-permit")
def settle_permit(
    name: str = NAME,
    permit: str = typer.Argument(help="Key of the permit, as `permits` shows it."),
    undone: bool = typer.Option(
        default=False, help="It was not done: effects and costs are taken back. Without, it was done."
    ),
    url: str = URL,
    output: Output = Format.TEXT,
) -> None:
    """Settle a permit whose holder died or does not know, once a person has looked. Exit 0: settled. 1: rejected. 2: refused."""
    ask = "abort" if undone else "confirm"
    with refusals(output), calls_of(url) as calls:
        told = calls.post(name, ask, {"permit": permit, "key": f"person-{uuid.uuid4().hex}"})
    raise typer.Exit(_verdict(told, told["verdict"], output))


def _open_permits(calls: KernelCalls, name: str) -> list[dict[str, Any]]:
    """Return the permits that are open after the whole sealed trace, the oldest first."""
    found: dict[str, dict[str, Any]] = {}
    after = 0
    while page := calls.trace(name, after):
        for record in page:
            after = int(record["sequence"])
            data = json.loads(record["data_json"])
            executions = {
                field[2:]: json.loads(kept) for field, kept in dict(data["changes"] or {}).items() if field[:2] == "x:"
            }
            for key, kept in executions.items():
                if kept["state"] == _PERMITTED:
                    costs = ", ".join(
                        f"{number(micros)} {resource}" for resource, micros in kept["answer"]["costs"] or ()
                    )
                    found.setdefault(
                        key, {"permit": key, "action": data["action"], "since": record["timestamp"], "reserved": costs}
                    )
                else:
                    found.pop(key, None)
            for field in data["dropped"] or ():
                found.pop(field.removeprefix("x:"), None)
    return list(found.values())


def _resource(one: Mapping[str, Any], child: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    figures = ("limit", "gross", "refunded", "leased", "remaining")
    name = f"{child['name']}/{one['name']}" if child else one["name"]
    stopped = "STOPPED" if child and child["stopped"] else ""
    return (name, *(str(number(one[f"{figure}_micros"])) for figure in figures), stopped)


def _compensation(one: Mapping[str, Any]) -> tuple[str, ...]:
    by = one["action"] or "a person"
    return (one["execution"], one["of"], by, str(one["attempts"]), "STUCK" if one["stuck"] else "")


def _verdict(told: Mapping[str, Any], verdict: Mapping[str, Any], output: Format) -> int:
    if output is Format.JSON:
        print_json(told)
    else:
        checks = [
            f"  [{'ok' if one['passed'] else '--'}] {one['name']}{': ' + one['words'] if one['words'] else ''}"
            for one in verdict["checks"]
        ]
        key = [f"key {told['key']}"] if "key" in told else []
        _print(["approved" if verdict["approved"] else "rejected", *recorded_line(verdict), *checks, *key])
    return OK if verdict["approved"] else NEGATIVE


def _record(record: Mapping[str, Any]) -> str:
    data = json.loads(record["data_json"])
    more = [*(one[2] for one in data["checks"] or () if one[1] != "1"), *recorded_before(data)]
    return (
        f"{record['sequence']:>6}  {record['timestamp']}  {record['type']}  {data['action']}  {' '.join(more)}".rstrip()
    )


def _print(lines: list[str]) -> None:
    for line in lines:
        typer.echo(plain(line).rstrip())
