"""Fixtures that several layers share. Real parts only."""

from __future__ import annotations

import pytest

from tests.support.valkey import Valkey


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory):
    """A real Valkey server of this test run."""
    with Valkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def redis_url(valkey: Valkey) -> str:
    """URL of an empty real Valkey."""
    valkey.flush()
    return valkey.url
