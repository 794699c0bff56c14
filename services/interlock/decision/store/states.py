"""The port of the states of experiments, and its twin in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from interlock.domain.decision.experiment import DecidedCycle, ExperimentState


class ExperimentStates(Protocol):
    """States by experiment. They are a copy of what the chain says: what is lost here is made again from it."""

    async def state(self, experiment_id: str) -> ExperimentState | None:
        """Return a state; ``None`` where none is kept."""
        ...

    async def sequence(self, experiment_id: str) -> int | None:
        """Return the sequence of the state that is kept; ``None`` where none is."""
        ...

    async def put(
        self, experiment_id: str, state: ExperimentState, cycles: Sequence[DecidedCycle], *, anew: bool = False
    ) -> None:
        """Keep a state and lines of cycles, unless a later state is there. *anew*: in place of all that is there."""
        ...

    async def cycles(self, experiment_id: str, numbers: Sequence[int]) -> list[DecidedCycle | None]:
        """Return the lines of cycles; ``None`` for each that is not kept."""
        ...

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Return what cannot be used now."""
        ...

    async def close(self) -> None:
        """Close the store."""
        ...


class MemoryStates:
    """States in this process alone."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[ExperimentState, dict[int, DecidedCycle]]] = {}

    async def state(self, experiment_id: str) -> ExperimentState | None:
        """Return a state; ``None`` where none is kept."""
        held = self._held.get(experiment_id)
        return held[0] if held else None

    async def sequence(self, experiment_id: str) -> int | None:
        """Return the sequence of the state that is kept."""
        held = self._held.get(experiment_id)
        return held[0].sequence if held else None

    async def put(
        self, experiment_id: str, state: ExperimentState, cycles: Sequence[DecidedCycle], *, anew: bool = False
    ) -> None:
        """Keep a state and lines of cycles, unless a later state is there."""
        held, lines = self._held.get(experiment_id, (None, {}))
        if held is not None and not anew and held.sequence > state.sequence:
            return
        kept = {} if anew else lines
        self._held[experiment_id] = (state, {**kept, **{one.cycle: one for one in cycles}})

    async def cycles(self, experiment_id: str, numbers: Sequence[int]) -> list[DecidedCycle | None]:
        """Return the lines of cycles; ``None`` for each that is not kept."""
        _, lines = self._held.get(experiment_id, (None, {}))
        return [lines.get(number) for number in numbers]

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Memory is always there."""
        return {}

    async def close(self) -> None:
        """Nothing is open."""
