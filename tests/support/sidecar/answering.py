"""Fixtures of a sidecar before a provider that answers what it is asked.

A module takes those that it uses by name: ``running, provider = answering.running, answering.provider``.
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
async def sidecar(tmp_path, running, provider):
    """A sidecar with every service behind it in this process."""
    del provider
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger()) as one:
        yield one
