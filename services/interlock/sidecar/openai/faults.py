"""The refusal of a provider's answer that cannot be used."""

from __future__ import annotations

from interlock.domain.errors import Kind, Refused


def malformed(fault: str) -> Refused:
    """Return the refusal of a provider's response that cannot be used; *fault* is a constant name."""
    return Refused(
        Kind.BAD_GATEWAY,
        "UPSTREAM_INVALID_RESPONSE",
        "the model provider answered with something that is no chat completion",
        metadata={"fault": fault},
    )
