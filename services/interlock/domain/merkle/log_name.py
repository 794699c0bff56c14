"""Names of logs: the origin of their checkpoints (C2SP tlog-checkpoint). The settings need no more of the log than this."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9._/:-]{1,128}", re.ASCII)


def name_problem(name: str) -> str:
    """Return why *name* is no valid name of a log; empty if it is valid."""
    return "" if _NAME.fullmatch(name) else "must have 1 to 128 letters, digits and ._/:- such as example.com/audit"
