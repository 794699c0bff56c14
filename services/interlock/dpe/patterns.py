"""Patterns over untrusted text, on RE2 alone.

A backtracking engine can be made to run for minutes by 129 bytes (reliability.md A-23); RE2 is linear in the text by
construction, and refuses to compile what it cannot run so. All that the value comparer, the fabrication check and the
PII detector match against an answer, a prompt or a fact is compiled here.
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
