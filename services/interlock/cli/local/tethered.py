"""Commands that die with the process that starts them, even if that process is killed."""

from __future__ import annotations

import os
import sys

# PR_SET_PDEATHSIG, then exec. This is a separate process and not preexec_fn, which runs gRPC's fork handlers among our
# threads: they abort one start in a hundred, and with Triton's client one in five.
_LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def tethered(*command: str) -> list[str]:
    """Return the command line that runs *command* until the thread that starts it ends, however it ends.

    Its first word is the path of a program. Only Linux supports this; elsewhere the command is returned unchanged.
    """
    if sys.platform != "linux":
        return [*command]
    return [sys.executable, "-IS", "-c", _LAUNCH, str(os.getpid()), *command]
