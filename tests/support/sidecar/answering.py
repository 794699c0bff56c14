"""Fixtures of a sidecar in front of a provider that answers what it is asked, and of an analysis that checks summaries.

A module takes the ones that it uses by name: ``running, provider = answering.running, answering.provider``. ``sidecar`` and
``stored_sidecar`` ask for ``running``, ``provider`` and ``dpe`` by those names, so a module takes them together.
"""

from __future__ import annotations

import pytest

from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.sidecar import running_sidecar
from tests.support.sidecar.windows import Answering, Merger


@pytest.fixture(scope="module")
def running():
    """The provider's server."""
    with RunningProvider(Answering()) as provider:
        yield provider


@pytest.fixture
def provider(running) -> Answering:
    """The provider, with nothing received and nothing told."""
    running.provider.reset()
    return running.provider


@pytest.fixture
def dpe() -> Merger:
    """The analysis behind the sidecar."""
    return Merger()


@pytest.fixture
async def sidecar(tmp_path, running, provider, dpe):
    """A sidecar with every service behind it in this process, and its sessions in memory."""
    del provider
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe) as one:
        yield one


@pytest.fixture
async def stored_sidecar(tmp_path, running, provider, dpe, redis_url):
    """The same with its sessions in a real Valkey."""
    del provider
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, redis_url=redis_url) as one:
        yield one
