"""Fixtures of the sidecar's tests: a provider that does what it is told, and a sidecar in front of it."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import running_sidecar


@pytest.fixture(scope="session")
def running_provider():
    """The provider's server, for the whole run."""
    with RunningProvider(Provider()) as running:
        yield running


@pytest.fixture
def provider(running_provider):
    """The provider, with nothing received and nothing told."""
    running_provider.provider.reset()
    return running_provider.provider


@pytest.fixture
def upstream(running_provider, provider):
    """Base URL of the provider."""
    del provider
    return running_provider.base_url


@pytest.fixture
async def sidecar(tmp_path, upstream):
    """A sidecar over real services and a dpe that a test may choose."""
    async with running_sidecar(tmp_path, upstream=upstream) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_sidecar(tmp_path_factory, running_provider):
    """One sidecar for a module's tables of small cases; such a test is marked ``asyncio(loop_scope="module")``."""
    folder = tmp_path_factory.mktemp("shared")
    limits = {"upstream_timeout_s": 2.0, "max_body_bytes": 65_536}
    async with running_sidecar(folder, upstream=running_provider.base_url, **limits) as running:
        yield running
