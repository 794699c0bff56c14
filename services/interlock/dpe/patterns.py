"""Patterns over untrusted text, on RE2 alone.

A backtracking engine can be made to run for minutes by 129 bytes (reliability.md A-23); RE2 is linear in the text by
construction, and refuses to compile what it cannot run so. Everything in this package that is matched against an
answer, a prompt or a fact is compiled here.
"""

from collections.abc import Iterable
from typing import Any

import re2

# Letters of all scripts make large automata; past this RE2 refuses at start-up, not in the middle of a text.
_MOST_MEMORY = 64 << 20


def pattern(expression: str, *, ignore_case: bool = False, lines: bool = False) -> Any:
    r"""Compile an expression; offsets of its matches count code points.

    ``lines`` lets ``^`` and ``$`` match at line ends. ``\b``, ``\w`` and ``\d`` are ASCII: write ``\p{L}`` for letters.
    """
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    return re2.compile(f"(?m){expression}" if lines else expression, options=options)


def any_of(words: Iterable[str]) -> str:
    """Return an alternation of literal words, longest first, so that the longest one wins."""
    return "(?:" + "|".join(re2.escape(word) for word in sorted(words, key=lambda word: (-len(word), word))) + ")"
