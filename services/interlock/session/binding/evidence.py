"""What a call brings that may name its session, as domain values."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.binding.rank import Rank


@dataclass(frozen=True)
class GivenName:
    """A name by which a session is found again; the digest is keyed by its scope and kind."""

    rank: Rank
    digest: bytes
    begins: bool


@dataclass(frozen=True)
class GivenTurn:
    """An earlier answer together with what it answered."""

    digest: bytes
    weak: bool


@dataclass(frozen=True)
class BindingEvidence:
    """All that a call without a token brings: names, and the answers that it carries in their order."""

    names: tuple[GivenName, ...]
    turns: tuple[GivenTurn, ...]

    @property
    def digests(self) -> tuple[bytes, ...]:
        """Digests of all of it, names first, each once."""
        return tuple(dict.fromkeys([*(name.digest for name in self.names), *(turn.digest for turn in self.turns)]))
