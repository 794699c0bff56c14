"""Every row of the tables beside this file, through the whole mesh: HTTP and gRPC in, the audit trail out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.scenarios import Play, Scenario, registered, scenarios
from tests.support.sidecar.world import World, agents_file, four_sidecars, obedient, one_process

WORLDS = {"one": one_process, "four": four_sidecars}


def _rows() -> list[Any]:
    """Rows of the same world stand together: starting seven processes takes longer than any scenario."""
    rows = [(topology, row) for row in scenarios() for topology in row.topologies]
    rows.sort(key=lambda one: (one[0], one[1].world, one[1].table, one[1].name))
    # Seven processes for each world of theirs: the rows over four sidecars belong to the long tests.
    marks = {"one": [pytest.mark.timeout(180)], "four": [pytest.mark.timeout(180), pytest.mark.long]}
    return [
        pytest.param(row, topology, id=f"{row}-{topology}", marks=[pytest.mark.req(*row.req), *marks[topology]])
        for topology, row in rows
    ]


class Worlds:
    """The world of the row at hand; the one before ends when another is needed."""

    def __init__(self, folder: Path, running: RunningProvider) -> None:
        self._folder, self._running, self._ends = folder, running, AsyncExitStack()
        self._key, self._number = "", 0

    async def of(self, topology: str, scenario: Scenario) -> World:
        key = f"{topology} {scenario.world}"
        if key != self._key:
            await self.close()
            self._number += 1
            folder = self._folder / str(self._number)
            folder.mkdir()
            settings = {**scenario.settings, "agents_file": agents_file(folder, registered())}
            opening = WORLDS[topology](folder, self._running.provider, self._running.base_url, settings)
            self._world, self._key = await self._ends.enter_async_context(opening), key
        self._running.provider.reset()
        obedient(self._running.provider)
        return self._world

    async def close(self) -> None:
        self._key = ""
        await self._ends.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worlds(tmp_path_factory) -> AsyncIterator[Worlds]:
    with RunningProvider(Provider()) as running:
        held = Worlds(tmp_path_factory.mktemp("worlds"), running)
        yield held
        await held.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("scenario", "topology"), _rows())
async def test_a_scenario(scenario: Scenario, topology: str, worlds: Worlds):
    """A scenario ends as its table says, over one process and, where it names them, over four sidecar processes."""
    await Play(await worlds.of(topology, scenario), scenario).play()
