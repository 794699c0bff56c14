"""Runs the probes of a group: bounded in time, and apart from all others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial

from interlock.cli.probing import probes
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus

GROUP_LIMIT_S = 4.0


async def answering(group: str, probe: Callable[[], AsyncIterator[ProbeFinding]]) -> list[ProbeFinding]:
    """Return what a probe that awaits its answers found."""

    async def look(found: list[ProbeFinding]) -> None:
        async for finding in probe():
            found.append(finding)  # noqa: PERF401 - what was found before a fault is kept

    return await _isolated(group, look)


async def blocking(group: str, probe: Callable[[], Iterator[ProbeFinding]]) -> list[ProbeFinding]:
    """Return what a probe that blocks found, in a thread of its own."""

    async def look(found: list[ProbeFinding]) -> None:
        def keep() -> None:
            for finding in probe():
                found.append(finding)  # noqa: PERF402 - what was found before a fault is kept

        await probes.in_thread(keep)

    return await _isolated(group, look)


async def _isolated(group: str, look: Callable[[list[ProbeFinding]], Awaitable[None]]) -> list[ProbeFinding]:
    """Return what a group found. Its own end, by time or by any fault, is one more finding and ends no other group."""
    found: list[ProbeFinding] = []
    try:
        await probes.in_time(look(found), GROUP_LIMIT_S)
    except TimeoutError:
        late = f"no result after {GROUP_LIMIT_S:g} s"
        return [*found, ProbeFinding(group, "time", ProbeStatus.FAIL, late, "a disk or the network hangs")]
    except Exception as error:  # noqa: BLE001 - whatever is broken here, the rest is still worth telling
        return [*found, probes.broken(partial(ProbeFinding, group), "probe", error)]
    return found
