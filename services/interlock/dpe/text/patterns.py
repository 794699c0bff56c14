"""Patterns over untrusted text, on RE2 alone.

A backtracking engine can be made to run for minutes by 129 bytes (reliability.md A-23); RE2 is linear in the text by
construction, and refuses to compile what it cannot run so. What needs to look around itself is left to ``re``, short
and bounded; tests/adversarial/test_patterns.py pumps every pattern of the engine, of either kind.
"""

from typing import Any

import re2


def pattern(expression: str, *, ignore_case: bool = False) -> Any:
    r"""Compile an expression; offsets of its matches count code points.

    ``\b``, ``\w`` and ``\d`` are ASCII: write ``\p{L}`` for letters.
    """
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    return re2.compile(expression, options=options)
