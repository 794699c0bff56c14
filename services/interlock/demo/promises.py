"""The promises of the demonstration. A run that breaks one fails, and each broken promise is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from interlock.api.dpe.v1 import dpe_pb2
from interlock.demo.agent import HALTED, DemoWindow

FEWEST_WINDOWS = 5


def broken(
    windows: Sequence[DemoWindow], *, provider_calls: int, recorded_calls: int, crp_headers: set[str]
) -> Iterator[str]:
    """Yield a sentence for every broken promise."""
    if len(windows) < FEWEST_WINDOWS:
        yield f"only {len(windows)} windows, at least {FEWEST_WINDOWS} were promised"
    if not windows or windows[-1].status != HALTED:
        yield "the last window was not halted"
    if provider_calls != recorded_calls:
        yield f"the provider was called {provider_calls} times, and {recorded_calls} calls are on record"
    if not any(window.remedied for window in windows):
        yield "no window was remedied"
    if crp_headers:
        yield f"CRP headers reached the provider: {', '.join(sorted(crp_headers))}"
    for before, after in pairwise(windows):
        if after.budget_micros > before.budget_micros:
            yield f"the budget rose in window {after.number}"
    for window in windows:
        yield from _broken_in(window)


def _broken_in(window: DemoWindow) -> Iterator[str]:
    if window.answer is not None and window.answer not in {window.turn.answer, window.turn.again}:
        yield f"window {window.number}: the answer is not the recorded one"
    if window.status == HALTED and not (window.body or {}).get("crp_halt_reason"):
        yield f"window {window.number}: the 451 body names no reason"
    if window.chain not in {"VALID", "UNVERIFIED"} or (window.chain == "UNVERIFIED" and window.number > 1):
        yield f"window {window.number}: the chain is {window.chain or 'not reported'}"
    not_run = [stage for stage in window.report.stages if stage.status != dpe_pb2.STAGE_STATUS_RAN]
    for stage in not_run:
        yield f"window {window.number}: stage {stage.number} did not run"
    if not window.report.models:
        yield f"window {window.number}: the report names no model"
