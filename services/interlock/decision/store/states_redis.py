"""The states of experiments in Redis or Valkey, one hash for each."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from importlib import resources
from typing import Any, TypeVar

import redis.asyncio
from redis.exceptions import RedisError

from interlock.domain.decision.experiment import DecidedCycle, ExperimentState
from interlock.domain.errors import Refused, unavailable

A = TypeVar("A")

STORE_DOWN = "the store of experiments does not answer"


class RedisStates:
    """States in a store that all decision services of a mesh share."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        """Prepare the store; nothing is connected yet. Refused with DECISION_STORE_URL_INVALID."""
        self._client: Any = opened_client(url, timeout_s)
        script = resources.files("interlock.decision").joinpath("lua/put.lua").read_text(encoding="utf-8")
        self._put = self._client.register_script(script)

    async def state(self, experiment_id: str) -> ExperimentState | None:
        """Return a state; ``None`` where none is kept. Refused with DECISION_STORE_UNAVAILABLE."""
        text = await answered(self._client.hget(_key(experiment_id), "state"))
        return ExperimentState.of(text) if text else None

    async def put(
        self, experiment_id: str, state: ExperimentState, cycles: Sequence[DecidedCycle], *, anew: bool = False
    ) -> None:
        """Keep a state and lines of cycles, unless a later state is there. Refused with DECISION_STORE_UNAVAILABLE."""
        lines = [text for one in cycles for text in (f"c:{one.cycle}", one.told())]
        arguments: list[str | int] = [state.sequence, state.told(), int(anew), *lines]
        await answered(self._put(keys=[_key(experiment_id)], args=arguments))

    async def sequence(self, experiment_id: str) -> int | None:
        """Return the sequence of the state that is kept; ``None`` where none is. Refused with DECISION_STORE_UNAVAILABLE."""
        found = await answered(self._client.hget(_key(experiment_id), "sequence"))
        return int(found) if found else None

    async def cycles(self, experiment_id: str, numbers: Sequence[int]) -> list[DecidedCycle | None]:
        """Return the lines of cycles; ``None`` for each that is not kept. Refused with DECISION_STORE_UNAVAILABLE."""
        if not numbers:
            return []
        found = await answered(self._client.hmget(_key(experiment_id), [f"c:{number}" for number in numbers]))
        return [DecidedCycle.of(text) if text else None for text in found]

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Return the store where it does not answer."""
        try:
            await answered(self._client.ping())
        except Refused:
            return {"redis": STORE_DOWN + "; see INTERLOCK_REDIS_URL"}
        return {}

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def opened_client(url: str, timeout_s: float) -> Any:
    """Return a client that is not connected yet. Refused with DECISION_STORE_URL_INVALID."""
    try:
        return redis.asyncio.from_url(
            url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, decode_responses=True
        )
    except ValueError as error:
        raise unavailable(
            "DECISION_STORE_URL_INVALID", "redis_url has to be redis://, rediss:// or unix:// for experiments",
            retry_after_ms=0,
        ) from error  # fmt: skip


async def answered(asked: Awaitable[A]) -> A:
    """Return what the store answers. Refused with DECISION_STORE_UNAVAILABLE."""
    try:
        return await asked
    except (RedisError, OSError, TimeoutError):
        raise unavailable("DECISION_STORE_UNAVAILABLE", STORE_DOWN) from None


def _key(experiment_id: str) -> str:
    return f"il:{{{experiment_id}}}:decision"
