"""What the index knows of the evidence of a call, and what its binding ends in."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.binding.conversation import KnownTurn
from interlock.domain.binding.places import Place, unpacked
from interlock.domain.binding.rule import BoundCall, NamedPlace
from interlock.domain.ids import WindowId
from interlock.domain.session.state import OpenedWindow
from interlock.session.binding.evidence import BindingEvidence
from interlock.session.ledger import Ledger


@dataclass(frozen=True)
class BoundWindow:
    """The lease of a window, and how its call was bound."""

    window_id: WindowId
    opened: OpenedWindow
    bound: BoundCall


async def looked_up(ledger: Ledger, scope: str, evidence: BindingEvidence) -> tuple[list[NamedPlace], list[KnownTurn]]:
    """Return what the names and the turns of a caller stand for, asked in one step."""
    digests = evidence.digests
    values = await ledger.store.bindings.find(scope, digests, ledger.rules.bindings)
    places = {digest: unpacked(value) for digest, value in zip(digests, values, strict=True) if value}
    return (
        [NamedPlace(name.rank, name.begins, _only(places.get(name.digest, ()))) for name in evidence.names],
        [KnownTurn(turn.weak, places.get(turn.digest, ())) for turn in evidence.turns],
    )


def _only(places: tuple[Place, ...]) -> Place | None:
    return places[0] if places else None
