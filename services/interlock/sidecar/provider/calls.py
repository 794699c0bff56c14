"""The provider calls of one answer, against the one bound that the operator sets (``max_provider_calls``; ATT-10)."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import Histogram

from interlock.domain.errors import exhausted, forbidden

PROVIDER_CALLS = Histogram(
    "interlock_provider_calls", "Provider calls that an answer took.", buckets=[1, 2, 3, 4, 6, 8, 12, 16]
)


@dataclass
class ProviderCalls:
    """Counts the calls of one answer, whatever they are for. None is made beyond *most*."""

    most: int
    made: int = 0

    @property
    def left(self) -> int:
        """Calls that may still be made."""
        return self.most - self.made

    def require(self, needed: int, what: str) -> None:
        """Refuse with PROVIDER_CALLS_EXCEEDED, before the first call, an answer that needs more than the bound."""
        if needed > self.left:
            raise forbidden(
                "PROVIDER_CALLS_EXCEEDED",
                f"{what} takes {needed} provider calls at least, and max_provider_calls leaves {self.left}",
                limit=str(self.left), attempted=str(needed),
            )  # fmt: skip

    def take(self, *, keeping: int = 0) -> None:
        """Count one call. Refused with PROVIDER_CALLS_SPENT where none is left but those that are kept for the answer."""
        if self.left <= keeping:
            message = f"max_provider_calls allows {self.most} for one answer"
            raise exhausted("PROVIDER_CALLS_SPENT", message, limit=str(self.most))
        self.made += 1

    def note(self) -> None:
        """Count the answer, with the calls that it took."""
        PROVIDER_CALLS.observe(self.made)
