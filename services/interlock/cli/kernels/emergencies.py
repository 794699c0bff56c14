"""``interlock kernel emergencies``: what the sidecar of this machine recorded while kernels could not be reached (T8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from interlock.cli.output import NEGATIVE, OK, Format, Output, plain, print_json, refusals, table
from interlock.domain.errors import conflict, not_found
from interlock.domain.kernel.emergency import Spool
from interlock.runtime.clock import iso8601
from interlock.runtime.keys.emergency_keys import keys_at_hand
from interlock.runtime.rpc.kernels.spool import DOUBTED, SpoolFile
from interlock.runtime.settings.loading import load

SETTLE = typer.Option(
    0, "--settle", help="Number of one that a person has dealt with: it is taken out, and not sealed.", min=0
)
AGAIN = typer.Option(0, "--again", help="Number of a stuck one that is to be tried again.", min=0)
LOOKED = typer.Option(
    default=False, help="You have looked at what was changed by others: kernels are permitted again. The files stay."
)


def emergencies(settle: int = SETTLE, again: int = AGAIN, looked: bool = LOOKED, output: Output = Format.TEXT) -> None:
    """Show emergency actions that are recorded here and not sealed yet; read from the folder of the sidecar, whose settings are needed.

    They are sealed by themselves. STUCK: the kernel refuses it for good, and it needs a person. DOUBTED: files were changed by others; nothing
    is permitted through this sidecar until a person has looked.

    Exit 0: nothing needs a person. 1: something does. 2: refused.
    """
    with refusals(output):
        settings = load()
        folder = settings.emergency_dir or settings.state_dir / "emergencies"
        spool, doubted = Spool(), list[str]()
        if folder.is_dir():
            file = SpoolFile(folder, keys_at_hand(settings), settings.emergency_bytes)
            if looked:
                file.looked_at()
            _change(file, settle, again)
            spool = file.peek()
            doubted = [*(f"{folder}: {one}" for one in spool.faults), *map(str, sorted(folder.glob(DOUBTED + "*")))]
        elif settle or again:
            raise _unknown(settle or again)
    if output is Format.JSON:
        print_json({"emergencies": [*_told(spool)], "doubted": doubted})
    else:
        rows = [("number", "recorded", "kernel", "action", "", ""), *(_row(one) for one in _told(spool))]
        lines = [*table(rows)] if spool.open else ["every emergency action is sealed"]
        for line in (*lines, *(f"DOUBTED {one}" for one in doubted)):
            typer.echo(plain(line).rstrip())
    raise typer.Exit(NEGATIVE if spool.stuck or doubted else OK)


def recorded_line(verdict: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a verdict says of an action that the sidecar recorded."""
    if at_ms := int(verdict.get("recorded_at_ms", 0)):
        yield f"  recorded by the sidecar at {iso8601(at_ms * 1000)}: not sealed yet, and sealed once the kernel can be reached"


def recorded_before(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the data of a sealed record says of an action that was recorded before."""
    if told := data.get("recorded"):
        yield f"recorded at {iso8601(int(told['at_ms']) * 1000)} while the kernel could not be reached"


def _change(file: SpoolFile, settle: int, again: int) -> None:
    """Note what a person says of one. What another key wrote is left as it is: the sidecar's own settings are needed."""
    for number, what in ((settle, "settled"), (again, "again")):
        if not number:
            continue
        found = file.peek()
        if found.faults:
            raise conflict("KERNEL_EMERGENCIES_CHANGED", f"what is recorded cannot be read: {'; '.join(found.faults)}")
        if number not in found.open:
            raise _unknown(number)
        file.note(number, what)


def _unknown(number: int) -> Exception:
    return not_found(
        "KERNEL_EMERGENCY_UNRECORDED_HERE", "no emergency action of this number is open here", number=str(number)
    )


def _told(spool: Spool) -> Iterator[dict[str, Any]]:
    for number, one in spool.open.items():
        yield {
            "number": number, "recorded_at": iso8601(one.at_ms * 1000), "kernel_id": one.kernel_id, "kernel": one.kernel,
            "scope": one.scope, "action": one.action, "stop": one.stop, "child": one.child, "key": one.key,
            "stuck": spool.stuck.get(number, ""),
        }  # fmt: skip


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    stop = f"stop {one['child']}".strip() if one["stop"] else ""
    return (
        str(one["number"]),
        one["recorded_at"],
        one["kernel"],
        one["action"],
        stop,
        f"STUCK {one['stuck']}" if one["stuck"] else "",
    )
