"""``interlock audit stream``: show the position and dead letters of each sink, and send dead letters again (AUD-4)."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import typer

from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.log import AuditLog, DeadLetter, Writing
from interlock.audit.store.opening import open_log, open_reader
from interlock.audit.streams.delivery import Courier, Post, Undelivered
from interlock.audit.streams.feed import record
from interlock.audit.streams.sinks import Sink, load_sinks, report_sinks
from interlock.audit.streams.streaming import open_courier
from interlock.cli.audit.export import store_refusals
from interlock.cli.output import NEGATIVE, Format, Output, print_json
from interlock.domain.errors import not_found
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

app = typer.Typer(no_args_is_help=True, help="Inspect and repair the webhooks that receive audit events.")

SINK = typer.Argument(help="Name of the sink, as in the sinks file or `stream status`.")


@app.command()
def status(output: Output = Format.TEXT) -> None:
    """Show each sink: its position in the log, its lag, and its dead letters.

    Exit 0: shown. 2: the log or the sinks file cannot be read.
    """
    with store_refusals(output):
        settings = load()
        sinks = configured_sinks(settings)
        with closing(open_reader(settings)) as reader:
            size = reader.log_size()
            found = [_status(reader, sink, size) for sink in sinks.values()]
    if output is Format.JSON:
        print_json({"log_size": size, "sinks": found})
        return
    typer.echo(f"{size} entries in the log, {len(found)} sinks")
    for one in found:
        typer.echo(f"  {one['sink']}  at {one['cursor']}, {one['lag']} behind, {len(one['dead_letters'])} dead letters")
        for dead in one["dead_letters"]:
            typer.echo(f"    {dead['first']} to {dead['last']}  {dead['reason']}  {dead['at']}")


@app.command()
def retry(name: str = SINK, output: Output = Format.TEXT) -> None:
    """Send a sink's dead letters again, the oldest first. An accepted one is removed.

    Works while the service runs. Exit 0: all were accepted. 1: some were not. 2: no such sink, or the log cannot be read.
    """
    with store_refusals(output):
        settings = load()
        sink = configured_sinks(settings).get(name)
        if sink is None:
            raise not_found("SINK_NOT_FOUND", "no sink has this name", hint="interlock audit stream status lists them")
        sent, left = asyncio.run(_retry(settings, sink))
    if output is Format.JSON:
        print_json({"sink": name, "sent": sent, "left": left})
    else:
        typer.echo(f"{sent} sent, {len(left)} left" + "".join(f"\n  {one['first']}  {one['reason']}" for one in left))
    raise typer.Exit(NEGATIVE if left else 0)


def configured_sinks(settings: Settings) -> dict[str, Sink]:
    """Return every configured sink, including receivers of reports."""
    return {**load_sinks(settings), **report_sinks(settings)}


def _status(reader: Any, sink: Sink, size: int) -> dict[str, Any]:
    cursor = reader.cursor(sink.name)
    return {
        "sink": sink.name,
        "format": sink.format,
        "cursor": cursor,
        "lag": max(0, size - cursor),
        "dead_letters": [
            {"first": dead.first, "last": dead.last, "reason": dead.reason, "at": dead.at}
            for dead in reader.dead_letters(sink.name)
        ],
    }


@dataclass(frozen=True)
class _Retrying:
    """Sends the dead letters of one sink again."""

    sink: Sink
    audit_log: AuditLog
    writer: Appender
    sealer: Sealer
    courier: Courier

    async def resend(self, dead: DeadLetter) -> str:
        """Send one dead letter; return why it was not accepted, or an empty string."""
        entries = await asyncio.to_thread(self.audit_log.entries, dead.first, dead.last + 1)
        events = [(entry.position, entry.event) for entry in entries if entry.event and self.sink.takes(entry.event)]
        posts = self.courier.posts(self.sink, events)
        reasons = [reason for post in posts if (reason := await self._refusal(post))]
        if reasons:
            return reasons[0]

        def settled(writing: Writing) -> None:
            record(self.sealer, posts, writing)
            writing.drop_dead_letter(self.sink.name, dead.first)

        await self.writer.submit(settled)
        return ""

    async def _refusal(self, post: Post) -> str:
        try:
            await self.courier.send(self.sink, post)
        except Undelivered as failed:
            return failed.reason
        return ""


async def _retry(settings: Settings, sink: Sink) -> tuple[int, list[dict[str, Any]]]:
    with closing(open_reader(settings)):
        pass  # never create a missing log here
    audit_log = open_log(settings)
    writer = Appender(audit_log)
    try:
        sealer = Sealer(load_keyring(settings), system_clock, os.urandom)
        again = _Retrying(sink, audit_log, writer, sealer, open_courier(settings, system_clock))
        listed = await asyncio.to_thread(audit_log.dead_letters, sink.name)
        outcomes = [(dead, await again.resend(dead)) for dead in listed]
    finally:
        await writer.close()
    left = [{"first": dead.first, "last": dead.last, "reason": reason} for dead, reason in outcomes if reason]
    return len(outcomes) - len(left), left
