"""Claims of whose figures the model says little where no source states them: fields, rows, and sums that show how they are made."""

from __future__ import annotations

from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.cells import cells_of, label_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.derived import DOWN, UP

_SHOWS_WORK = pattern(r"[×*÷=]|\btimes\b|\bmultipl\w+|\bscal\w+|\d\s[+x/−–]\s\d", ignore_case=True)
_DATA = pattern(r"""["'][\p{L}\d_ ]{1,40}["']\s*:\s|^[\p{L}\d_. -]{1,40}\s?[:=]\s?[\d.,:TZ+-]{1,30}$""")
_LIMITS = pattern(r"\b(?:no|not) \w+ than\b", ignore_case=True)


def is_unheard(text: str) -> bool:
    """Whether the model's denial of a claim with made figures says nothing: of data, and of a result with its sum."""
    return _is_data(text) or (_SHOWS_WORK.search(text) is not None and not _turns(text))


def _is_data(text: str) -> bool:
    """Whether a claim is a field, a row or a line of data."""
    return label_of(text) is not None or cells_of(text) is not None or _DATA.search(text) is not None


def _turns(text: str) -> bool:
    """Whether a claim says *no*, or *up* and *down*: what speaks against it may then be heard in its words."""
    return any(token.low in UP | DOWN or is_negator(token.low) for token in read(_LIMITS.sub("than", text)).tokens)
