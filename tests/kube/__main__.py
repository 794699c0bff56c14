"""``make kube``: build what is needed while there is a network, then run the tests in namespaces of their own.

The tests get a network namespace and a mount namespace: their ports and addresses clash with nothing, and nothing of them is left.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from tests.deploy import tools as deploy
from tests.kube import tools

INSIDE = "INTERLOCK_KUBE"
LIMIT_S = 900


def missing() -> str:
    """Return what this machine lacks, in words; "" where nothing is missing."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "pods need networks, mounts and users of their own: Linux and root"
    absent = [name for name in ("unshare", "nsenter", "ip", "mount") if shutil.which(name) is None]
    if absent:
        return f"not installed here: {', '.join(absent)} (util-linux, iproute2)"
    os.environ["INTERLOCK_BUILD_TOOLS"] = "1"
    try:
        deploy.helm()
        tools.control_plane()
    except pytest.skip.Exception as skipped:
        return str(skipped)
    return ""


def main() -> None:
    """Run pytest on this folder with the arguments that were given."""
    if why := missing():
        print(f"make kube: skipped: {why}", file=sys.stderr)
        return
    python = [sys.executable, "-m", "pytest", "-m", "", "--timeout", str(LIMIT_S), "-p", "no:cacheprovider"]
    given = sys.argv[1:]
    where = [] if any("tests/kube" in one for one in given) else ["tests/kube"]
    os.environ[INSIDE] = "1"
    # A process namespace too: nothing of the cluster outlives the tests, however they end.
    processes = ["--pid", "--fork", "--kill-child", "--mount-proc"]
    own = ["unshare", "--net", "--mount", *processes, "--propagation", "private"]
    os.execvp(own[0], [*own, *python, *given, *where])


if __name__ == "__main__":
    main()
