"""Open the policy service from its settings."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.domain.agents import Registry, read_registry
from interlock.domain.errors import Refused, invalid
from interlock.domain.policy.directives import NOTHING, Oversight, Policy
from interlock.domain.policy.policy_order import merge
from interlock.domain.policy.policy_text import parse
from interlock.policy.agents import AgentRegistry
from interlock.policy.pods import PodIdentities, pod_identities
from interlock.policy.reviewers import NO_REVIEWERS, Registered, Reviewers, read_reviewers
from interlock.policy.servicer import PolicyServicer
from interlock.policy.watched import WatchedFile
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings


async def open_service(settings: Settings, *, clock: Clock = system_clock) -> Service:
    """Return the policy service. It reads its registry and its reviewers now, and again whenever their files change.

    Refused for a malformed ``default_policy``, ``agents_file`` or ``reviewers_file``, so that nothing starts unguarded.
    """
    agents, reviewers = await asyncio.to_thread(_files, settings)
    watches = [asyncio.create_task(file.watch()) for file in (agents, reviewers) if file is not None]
    pods = pod_identities(settings)
    registry = AgentRegistry(agents, required=settings.require_registered_agents)
    return Service(
        name="policy",
        full_names=(policy_pb2.DESCRIPTOR.services_by_name["PolicyService"].full_name,),
        servicer=PolicyServicer(
            _default_policy(settings.default_policy, reviewed=settings.review_required),
            agents=registry,
            reviewers=Registered(
                (lambda: NO_REVIEWERS) if reviewers is None else (lambda: reviewers.now.value),
                by_rpc=settings.reviewers_by_rpc,
            ),
            pods=pods,
            clock=clock,
            user_words_ground=settings.user_words_ground,
        ),
        register=policy_pb2_grpc.add_PolicyServiceServicer_to_server,
        unready_dependencies=_nothing_unready,
        close=_closing(watches, pods),
    )


def _files(settings: Settings) -> tuple[WatchedFile[Registry] | None, WatchedFile[Reviewers] | None]:
    agents = reviewers = None
    if settings.agents_file is not None:
        with _naming("agents_file"):
            agents = WatchedFile(settings.agents_file, read_registry, setting="agents_file")
    elif settings.require_registered_agents:
        raise invalid(
            "SETTINGS_INVALID",
            "require_registered_agents needs agents_file; without it no caller could start a session",
            setting="require_registered_agents",
        )
    if settings.reviewers_file is not None:
        with _naming("reviewers_file"):
            reviewers = WatchedFile(settings.reviewers_file, read_reviewers, setting="reviewers_file")
    return agents, reviewers


@contextlib.contextmanager
def _naming(setting: str) -> Iterator[None]:
    """Add the name of the setting to a refusal."""
    try:
        yield
    except Refused as refused:
        refused.message = f"{setting} (INTERLOCK_{setting.upper()}): {refused.message}"
        refused.metadata["setting"] = setting
        raise


def _default_policy(text: str, *, reviewed: bool) -> Policy:
    with _naming("default_policy"):
        stated = parse(text) if text else NOTHING
        return merge(stated, Policy(oversight=Oversight.HUMAN_REVIEW)) if reviewed else stated


async def _nothing_unready() -> Mapping[str, str]:
    return {}


def _closing(watches: Sequence[asyncio.Task[None]], pods: PodIdentities) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        await pods.close()

    return close
