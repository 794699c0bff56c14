"""Regular expressions over untrusted text, on RE2 alone (reliability.md A-23).

A text of 129 bytes can keep a backtracking engine busy for minutes. RE2 is linear in the text by construction and
refuses to compile what it cannot run in linear time. Expressions that need lookaround stay with ``re``, short and
bounded. tests/adversarial/test_patterns.py pumps every pattern of the engine, of either kind.
"""

from typing import Any

import re2


def pattern(expression: str, *, ignore_case: bool = False) -> Any:
    r"""Compile an expression. Offsets of its matches count code points.

    ``\b``, ``\w`` and ``\d`` are ASCII: write ``\p{L}`` for letters.
    """
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    return re2.compile(expression, options=options)


def spaced(expression: str, *, ignore_case: bool = False) -> Any:
    r"""Compile an expression that is laid out over lines: its white space counts for nothing; write ``\s`` for it."""
    return pattern("".join(expression.split()), ignore_case=ignore_case)


def span_of(match: Any, name: str) -> tuple[int, int]:
    """Return the span of a named group, which RE2 numbers."""
    start, end = match.span(match.re.groupindex[name])
    return start, end
