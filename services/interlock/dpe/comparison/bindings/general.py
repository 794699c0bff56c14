"""General nouns: those that name a thing by its sort only, so that they may stand for any of it."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.text.wordlists import word_set

GENERAL = frozenset(
    map(
        key,
        word_set(
            "company firm group organisation organization bank agency institution body team club party side man woman person "
            "people official country nation city town state region area place site building product device system service "
            "tool model drug medicine treatment study report paper article author researcher scientist patient victim suspect "
            "player actor singer star band movie film show event incident accident decision plan project programme program "
            "scheme measure law rule act bill deal agreement amount number figure sum total lender business corporation "
            "authority government youngster boy girl"
        ),
    )
)
"""Nouns that may stand for another filler of the same text."""
