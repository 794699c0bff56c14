"""The toolchains of other languages, where this machine has them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

# What go, npm, cargo and Maven say when they cannot fetch what a lock file names.
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|ENOTFOUND|ECONNREFUSED|EAI_AGAIN|network request|proxyconnect|ENOTCACHED|i/o timeout|TLS handshake"
    r"|failed to (?:download|fetch)|Could not resolve host|Could not (?:transfer|resolve|find) artifact|Unknown host"
)


def needs(*programs: str) -> pytest.MarkDecorator:
    """Return the mark that skips a test, with a word, where one of *programs* is not installed."""
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed here: {', '.join(missing)}")


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command and return its output; skip where it could not fetch its packages, fail where it failed."""
    said = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    everything = said.stdout + said.stderr
    if said.returncode and _NO_NETWORK.search(everything):
        pytest.skip(f"{command[0]} cannot fetch its packages here: {everything[-300:]}")
    assert said.returncode == 0, everything[-6000:]
    return said.stdout
