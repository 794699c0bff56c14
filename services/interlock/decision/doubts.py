"""From which cycle on a kernel may hold something that no trace has: what a run reserved that died before its seal (DEC-13).

A permit that was not answered, and one of a run that ended before its seal, is taken back once the kernel answers. How far that is
done is in the trace of each cycle, so that another process goes on with it, however long the kernel was silent.
"""

from __future__ import annotations

from interlock.domain.decision.experiment import MOST_RESERVED, ExperimentState


class DoubtfulReservations:
    """The first doubtful cycle of each experiment. Behind the coming cycle: there is none."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def begun(self, experiment_id: str, state: ExperimentState) -> int:
        """Return the first doubtful cycle before the next one is run.

        It is forgotten here: until that one is concluded nobody knows what it reserved, since who asked for it may leave at any moment.
        """
        last, first = self._known.pop(experiment_id, (-1, 0))
        if last != state.cycle:  # not concluded here: the coming one may have been run before
            first = state.doubtful or max(1, state.cycle)
        if len(state.reserved) >= MOST_RESERVED:  # what is older may have been forgotten, and counts as done
            first = max(first, min(map(int, state.reserved)))
        return first

    def concluded(self, experiment_id: str, cycle: int, first: int) -> None:
        """Keep the first doubtful cycle after the last one."""
        self._known[experiment_id] = (cycle, first)
