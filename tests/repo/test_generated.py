"""What is generated is fresh."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT


@pytest.mark.parametrize("script", ["gen_protos.py", "gen_docs.py", "gen_requirements.py", "gen_chart.py"])
def test_committed_output_is_what_the_generator_writes(script):
    """Stubs, reference pages and the requirements table are those that their sources give now."""
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)

    assert said.returncode == 0, said.stdout + said.stderr


def test_import_contracts_hold():
    """The domain imports nothing of ours, no service imports another, the runtime knows no service."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)

    assert said.returncode == 0, said.stdout + said.stderr
