"""Signals to stop, wherever they find the demonstration."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = """
import os, signal, time
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.1)
"""

OLD = "signal.signal(signal.SIGTERM, lambda *_: exec('raise KeyboardInterrupt'))"
OURS = "from interlock.demo.mesh import interrupt_on_stop; interrupt_on_stop()"

SCRIPT = """
import signal, sys, time
{install}
try:
    import slow
    sys.stdout.write("imported\\n")  # in one piece: print ends its line in a second write, and the signal may come in between
    time.sleep(20)
except KeyboardInterrupt:
    sys.stdout.write("stopped\\n")
"""


@pytest.mark.parametrize(("install", "said"), [(OURS, ["imported", "stopped"]), (OLD, ["stopped"])])
def test_a_signal_waits_for_the_end_of_an_import(tmp_path, install, said):
    """One that comes in the midst of an import acts right after it; raised there, it would break the import off."""
    (tmp_path / "slow.py").write_text(SLOW)

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(install=install)], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip

    assert done.stdout.split() == said, done.stderr
