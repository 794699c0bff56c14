"""The log of this process, as a fixture."""

from __future__ import annotations

import io
import json
import logging as stdlib_logging

import pytest
import structlog

from interlock.runtime import logging


@pytest.fixture
def log_lines():
    """JSON lines of this process."""
    root, stream = stdlib_logging.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    logging.configure("info", stream=stream, cache=False)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    structlog.reset_defaults()
    root.handlers[:] = before
    root.setLevel(level)
    stdlib_logging.captureWarnings(capture=False)
