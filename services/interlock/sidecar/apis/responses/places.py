"""Where a fault of the chat request stands in the request that it was made from.

The chat request's own checks judge every value, so that both fronts accept the same; only the names of the places differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from interlock.domain.errors import Refused


@dataclass
class GivenPlaces:
    """GivenPlaces of the chat request, each with the place that it was made from."""

    known: dict[str, str] = field(default_factory=dict)

    def note(self, ours: str, given: str) -> None:
        """Note that what is at *ours* in the chat request came from *given*."""
        self.known[ours] = given

    def told(self, refused: Refused) -> Refused:
        """Return a refusal of the chat request in the words of the request that it was made from."""
        param = refused.metadata.get("param", "")
        ours = max((place for place in self.known if _within(param, place)), key=len, default=None)
        if ours is None:
            return refused
        given = self.known[ours] + param[len(ours) :]
        message, metadata = refused.message.replace(param, given), {**refused.metadata, "param": given}
        return Refused(refused.kind, refused.reason, message, metadata=metadata, retry_after_ms=refused.retry_after_ms)


def _within(param: str, place: str) -> bool:
    return param == place or param.startswith((place + ".", place + "["))
