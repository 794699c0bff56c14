"""When a provider says that it may be asked again: Retry-After in seconds or as a date, and retry-after-ms (RFC 9110 §10.2.3)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LEAST_MS, MOST_MS = 1000, 7 * 86_400_000
"""Never at once: a limit that was reached is not over by then. A longer wait than a week is none."""

_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)


def told_ms(headers: Mapping[str, str], *, now_s: float) -> int | None:
    """Return the delay that response *headers* tell; ``None`` where they tell none."""
    exact, given = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    if _NUMBER.fullmatch(exact):
        wanted = float(exact)
    elif _NUMBER.fullmatch(given):
        wanted = float(given) * 1000
    else:
        try:
            wanted = (parsedate_to_datetime(given).timestamp() - now_s) * 1000
        except (ValueError, OverflowError, OSError):
            return None
    return min(max(LEAST_MS, math.ceil(wanted)), MOST_MS)
