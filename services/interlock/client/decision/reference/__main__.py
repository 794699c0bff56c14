"""``python -m interlock.client.decision.reference NAME``: serve one reference agent; the environment says where and as whom."""

from __future__ import annotations

import contextlib
import sys

from interlock.client.decision.places import DecisionRefusedError
from interlock.client.decision.reference.agents import AGENTS
from interlock.client.decision.running import run

if __name__ == "__main__":
    try:
        with contextlib.suppress(KeyboardInterrupt):
            run(AGENTS[sys.argv[1]]())
    except DecisionRefusedError as refused:
        sys.exit(str(refused))
