"""Fixtures that several layers share. Real parts only."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support.valkey import Valkey

settings.register_profile("untimed", deadline=None)  # a busy machine fails no property
settings.load_profile("untimed")


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
