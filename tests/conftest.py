"""Fixtures that several layers share. Real parts only."""

from __future__ import annotations

import os
import sys

import pytest
import structlog
from hypothesis import settings

from tests.support.servers.postgres import OWNER, Postgres
from tests.support.valkey import Valkey

# Images for containers forbid bytecode. Here each worker, and each process that a test starts, would compile all of our code anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("untimed", deadline=None)  # a busy machine fails no property
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _log_as_before():
    """A command that ran in this process leaves no level behind for the tests after it."""
    yield
    structlog.reset_defaults()


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


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server of this test run."""
    with Postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """URL of an empty database, as its owner."""
    return postgres.url(postgres.database(), OWNER)
