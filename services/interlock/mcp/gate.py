"""The kernel as the proxy asks it: a permit before each call, its settlement after. A kernel that does not answer permits nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import structlog

from interlock.client.errors import InterlockError, Unavailable
from interlock.client.kernel.calls import KernelCalls
from interlock.domain.errors import forbidden, unavailable
from interlock.mcp.planning import PlannedCall

log = structlog.get_logger()

DRAIN_S = 10.0


@dataclass(frozen=True)
class GivenPermit:
    """A call that the kernel permitted: it is charged, and taken for done until it is settled."""

    key: str
    plan: PlannedCall


class CallGate:
    """Permits calls at one kernel, for the caller of *calls*. What was permitted and never settled counts as done."""

    def __init__(self, calls: KernelCalls, kernel: str, *, child: str = "") -> None:
        self._calls, self._kernel, self._child = calls, kernel, child
        self._known: dict[str, str] = {}
        """Actions that the kernel has, with a digest of what each is: another one of the same name is not known."""
        self._definition: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._settling: set[asyncio.Task[None]] = set()
        self._giving_back: set[asyncio.Task[None]] = set()

    async def permit(self, plan: PlannedCall) -> GivenPermit:
        """Return a permit. Refused with MCP_ACTION_REJECTED and what failed, with the reasons of the kernel, or MCP_KERNEL_UNAVAILABLE."""
        # What this proxy gives back is back before it asks again: otherwise a refund could be refused as a lack of funds.
        await _ended(self._giving_back)
        key = f"mcp-{uuid.uuid4().hex}"
        try:
            await asyncio.to_thread(self._permitted, plan, key)
        except Unavailable as error:
            self._void(GivenPermit(key, plan))
            raise unavailable("MCP_KERNEL_UNAVAILABLE", f"the kernel cannot decide now ({error.reason})") from None
        except InterlockError as error:
            raise forbidden(error.reason, str(error).partition(": ")[2] or error.reason) from None
        except (httpx.HTTPError, ValueError, KeyError) as error:
            self._void(GivenPermit(key, plan))
            raise unavailable(
                "MCP_KERNEL_UNAVAILABLE", f"the kernel does not answer ({type(error).__name__})"
            ) from None
        return GivenPermit(key, plan)

    def confirm(self, permit: GivenPermit, content: Any) -> None:
        """Settle a call that was done, in the background: its result does not wait, and until then it counts at its full cost."""
        self._begin(permit, "confirm", {"actual": permit.plan.settled(content)})

    def abort(self, permit: GivenPermit) -> None:
        """Take back a call that was not done, in the background."""
        self._begin(permit, "abort", {})

    def _void(self, permit: GivenPermit) -> None:
        """Take back a call that the kernel may have permitted, or may permit yet, and that is not made."""
        self._begin(permit, "abort", {"even_unseen": True})

    async def settled(self) -> None:
        """Wait for what is being settled."""
        await _ended(self._settling)

    def _begin(self, permit: GivenPermit, ask: str, more: Mapping[str, Any]) -> None:
        task = asyncio.create_task(self._settle(permit, ask, more))
        kept = [self._settling, *([self._giving_back] if more.get("actual", True) else [])]
        for tasks in kept:
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _settle(self, permit: GivenPermit, ask: str, more: Mapping[str, Any]) -> None:
        body = {"permit": permit.key, "key": f"{ask}-{permit.key}", **more}
        try:
            told = (await asyncio.to_thread(self._calls.post, self._kernel, ask, body))["verdict"]
            if not told["approved"] and more.get("actual"):
                # It says that it cost more than was reserved: the reservation is what it may cost.
                log.warning("mcp.cost_above_reserved", action=permit.plan.action)
                body = {"permit": permit.key, "key": f"full-{permit.key}"}
                await asyncio.to_thread(self._calls.post, self._kernel, ask, body)
        except (InterlockError, httpx.HTTPError, ValueError, KeyError) as error:
            log.warning("mcp.unsettled", action=permit.plan.action, operation=ask, error=type(error).__name__)

    def _permitted(self, plan: PlannedCall, key: str) -> None:
        self._register(plan)
        asked = {"action": plan.action, "key": key, "child": self._child}
        told = self._calls.post(self._kernel, "permit", asked)["verdict"]
        if not told["approved"]:
            raise forbidden("MCP_ACTION_REJECTED", told["for_model"] or "the kernel rejected it")

    def _register(self, plan: PlannedCall) -> None:
        with self._lock:
            if self._known.get(plan.action) == (told := _told(plan.body)):
                return
            if self._definition is None:
                self._definition = self._calls.describe(self._kernel)["definition"]
            if plan.body is not None or not self._has(plan.action):
                body = plan.body or {"id": plan.action, "name": plan.tool[:200]}
                whole = {**self._definition, "variables": [], "actions": [body]}
                self._calls.post(self._kernel, "open", {"definition": whole})
            self._known[plan.action] = told

    def _has(self, action: str) -> bool:
        return any(one["id"] == action for one in (self._definition or {}).get("actions", ()))


def _told(body: Mapping[str, Any] | None) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(set(tasks), timeout=DRAIN_S)


def joined(calls: KernelCalls, kernel: str) -> None:
    """Refuse to begin without the kernel. Refused with its reason, or MCP_KERNEL_UNAVAILABLE."""
    try:
        calls.describe(kernel)
    except Unavailable as error:
        raise unavailable("MCP_KERNEL_UNAVAILABLE", f"the kernel cannot be read: {error.reason}") from None
    except InterlockError as error:
        hint = "open it first, with SafetyKernel or POST …/open; docs/kernel.md has how"
        raise forbidden(error.reason, str(error).partition(": ")[2], hint=hint) from None
    except httpx.HTTPError as error:
        hint = "start it with `interlock serve`, or name it with --sidecar"
        raise unavailable(
            "MCP_KERNEL_UNAVAILABLE", f"the sidecar does not answer: {type(error).__name__}", hint=hint
        ) from None
