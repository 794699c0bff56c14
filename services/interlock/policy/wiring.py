"""Opens the policy service from its settings."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.domain.errors import Refused
from interlock.domain.policy import NOTHING, Policy
from interlock.domain.policy_text import parse
from interlock.policy.servicer import PolicyServicer
from interlock.runtime.config import Settings
from interlock.runtime.service import Service


async def open_service(settings: Settings) -> Service:
    """Return the policy service. Refused as ``parse`` for a malformed ``default_policy``: nothing starts unguarded."""
    return Service(
        name="policy",
        full_name=policy_pb2.DESCRIPTOR.services_by_name["PolicyService"].full_name,
        servicer=PolicyServicer(_default_policy(settings.default_policy)),
        register=policy_pb2_grpc.add_PolicyServiceServicer_to_server,
        missing=_nothing_missing,
        close=_nothing_to_close,
    )


def _default_policy(text: str) -> Policy:
    if not text:
        return NOTHING
    try:
        return parse(text)
    except Refused as refused:
        refused.message = f"default_policy (INTERLOCK_DEFAULT_POLICY): {refused.message}"
        refused.metadata["setting"] = "default_policy"
        raise


async def _nothing_missing() -> Mapping[str, str]:
    return {}


async def _nothing_to_close() -> None:
    """It holds nothing open."""
