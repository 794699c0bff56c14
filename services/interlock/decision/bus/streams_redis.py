"""Signals in Redis or Valkey: a stream for each experiment, whose entries have numbers without gaps."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from importlib import resources
from typing import Any

from interlock.decision.bus.streams import PutSignals, StreamEntry, StreamPage, StreamRow
from interlock.decision.store.states_redis import answered, opened_client

LIFE_MS = 7 * 24 * 3600 * 1000
"""A bus without signals for so long is forgotten."""


class RedisStreams:
    """Signals in a store that all decision services of a mesh share."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        """Prepare the store; nothing is connected yet. Refused with DECISION_STORE_URL_INVALID."""
        self._client: Any = opened_client(url, timeout_s)
        script = resources.files("interlock.decision").joinpath("lua/emit.lua").read_text(encoding="utf-8")
        self._emit = self._client.register_script(script)

    async def put(self, experiment_id: str, most: int, entries: Sequence[StreamEntry]) -> PutSignals:
        """Put signals in order, in one step. Refused with DECISION_STORE_UNAVAILABLE."""
        arguments: list[str | int] = [secrets.token_hex(8), most, LIFE_MS]
        for one in entries:
            arguments += (one.id, one.share, one.type, one.cycle, one.text)
        epoch, dropped, *told = await answered(self._emit(keys=_keys(experiment_id), args=arguments))
        places = [(int(number), bool(known)) for number, known in zip(told[::2], told[1::2], strict=True)]
        return PutSignals(str(epoch), int(dropped), places)

    async def page(self, experiment_id: str, after: int, limit: int) -> StreamPage:
        """Return signals after a number. Refused with DECISION_STORE_UNAVAILABLE."""
        stream, about, *_ = _keys(experiment_id)
        async with self._client.pipeline(transaction=True) as pipeline:
            pipeline.hget(about, "epoch")
            pipeline.xrange(stream, min=f"({after}-0", max="+", count=limit)
            epoch, found = await answered(pipeline.execute())
        rows = [StreamRow(int(at.partition("-")[0]), one["k"], int(one["c"]), one["b"]) for at, one in found]
        return StreamPage(epoch or "", rows if epoch else ())

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _keys(experiment_id: str) -> list[str]:
    parts = ("signals", "signals:about", "signals:ids", "signals:shares", "signals:places")
    return [f"il:{{{experiment_id}}}:decision:{part}" for part in parts]
