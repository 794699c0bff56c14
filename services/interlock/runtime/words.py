"""Labels of metrics that somebody else chooses: as many as a series can bear, and never a text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

OTHER = "other"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,63}", re.ASCII)


@dataclass
class BoundedWords:
    """The first *most* words that were given, each itself; everything after them, and what is no word, is ``other``."""

    most: int
    _known: set[str] = field(default_factory=set)

    def label(self, given: str) -> str:
        """Return the label for *given*. An empty one stays empty: nothing was named."""
        if given in self._known or not given:
            return given
        if len(self._known) >= self.most or not _WORD.fullmatch(given):
            return OTHER
        self._known.add(given)
        return given
