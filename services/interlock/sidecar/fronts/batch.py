"""The batch strategy: independent requests, each in a window of its own (SPEC-008 §8).

The windows are siblings: they fan out from the session's latest window, and in a new session from the window of the first
item, because every session has one root. They share no context, and their charges add up: once the budget is spent, what is
left is refused by name, item by item.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from interlock.api.common.v1 import common_pb2
from interlock.domain.budget import Micros, as_decimal, budget_warning
from interlock.domain.errors import Refused, forbidden, invalid
from interlock.domain.headers.headers import RequestHeaders
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.call.call import Call
from interlock.sidecar.closing import Governed
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.hierarchy import token_in
from interlock.sidecar.provider.strategies import BATCH, FAN_OUT
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

ID = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Item:
    """One request of a batch. *make* returns its call, or refuses it."""

    item_id: str
    make: Callable[[RequestHeaders, ResponseHeaders], Call]


@dataclass(frozen=True)
class BatchItem:
    """What became of one item; it is refused, or governed, which may still end in a refusal of its own."""

    item_id: str
    reply: ResponseHeaders
    governed: Governed | None
    refusal: Refused | None


@dataclass(frozen=True)
class Batched:
    """All results, in the order of the items, and the token for the call after them."""

    results: tuple[BatchItem, ...]
    token: str


async def govern_batch(
    front: Front, caller: Caller, asked: RequestHeaders, items: Sequence[Item], reply: ResponseHeaders
) -> Batched:
    """Govern all *items*. *reply* learns the worst risk of all of them and the budget after them.

    Refused with INVALID_BATCH or MAX_FAN_OUT_EXCEEDED before anything is begun; any other failure ends one item alone.
    """
    _check(asked, items, front.settings.max_fan_out)
    batch = _Batch(front, replace(asked, strategy=None, preferred=()))
    results = await batch.run(items, rooted=await _has_windows(front, caller, asked))
    token = _summed_up(results, reply)
    return Batched(results, token)


def _check(asked: RequestHeaders, items: Sequence[Item], most: int) -> None:
    if asked.strategy not in {None, BATCH} or asked.branch or len(asked.continuation_ids) > 1:
        raise invalid("INVALID_BATCH", "a batch continues one window and has no strategy but batch", param="headers")
    if not items:
        raise invalid("INVALID_BATCH", "a batch has at least one item", param="items")
    for number, item in enumerate(items):
        if not ID.fullmatch(item.item_id):
            message = "an id must be 1 to 64 letters, digits, dots, hyphens or underscores"
            raise invalid("INVALID_BATCH", message, param=f"items[{number}].id")
    if len({item.item_id for item in items}) != len(items):
        raise invalid("INVALID_BATCH", "two items have the same id", param="items")
    if len(items) > most:
        raise forbidden(
            "MAX_FAN_OUT_EXCEEDED", f"a batch has at most {most} items", limit=str(most), attempted=str(len(items))
        )


async def _has_windows(front: Front, caller: Caller, asked: RequestHeaders) -> bool:
    """Tell whether there is a window to fan out from."""
    if asked.session_token is None:
        return False
    return bool((await front.sessions.of_token(asked.session_token, caller.scope)).windows)


class _Batch:
    """One batch while it runs."""

    def __init__(self, front: Front, asked: RequestHeaders) -> None:
        self._front, self._asked = front, asked
        self._apart: frozenset[str] = frozenset()
        self._turn = asyncio.Semaphore(front.settings.batch_parallel)

    async def run(self, items: Sequence[Item], *, rooted: bool) -> tuple[BatchItem, ...]:
        """Govern the items, the first alone where the session has no root yet: until one is settled, each in its turn."""
        done: list[BatchItem] = []
        while not rooted and len(done) < len(items):
            done.append(await self._one(items[len(done)], self._asked))
            rooted = self._go_on_from(done[-1])
        children = replace(self._asked, strategy=FAN_OUT)
        rest = await asyncio.gather(*(self._one(item, children) for item in items[len(done) :]))
        return (*done, *rest)

    def _go_on_from(self, first: BatchItem) -> bool:
        """Take the token of a first item, and tell whether it is the root. One that failed began the session too."""
        token = first.governed.settled.token if first.governed else token_in(first.reply)
        if token:
            self._asked = replace(self._asked, session_token=token, grant=None, session_parent=None, loop_depth=None)
        if first.governed:
            self._apart = frozenset({first.governed.opened.window_id})
        return first.governed is not None

    async def _one(self, item: Item, asked: RequestHeaders) -> BatchItem:
        reply = ResponseHeaders()
        async with self._turn:
            try:
                call = replace(item.make(asked, reply), shape=BATCH, apart=self._apart)
                governed = await self._front.guard.govern(call)
            except Refused as refused:
                return BatchItem(item.item_id, reply, None, refused)
            except Exception:
                # The other items are charged and settled: their callers get them.
                log.exception("batch.defect", session_id=reply.session_id)
                return BatchItem(item.item_id, reply, None, internal())
        return BatchItem(item.item_id, reply, governed, governed.refusal)


def _summed_up(results: Sequence[BatchItem], reply: ResponseHeaders) -> str:
    """Let *reply* tell the worst of all items; return the token of the item after which the least was left."""
    ended = [(result, result.governed) for result in results if result.governed]
    if not ended:
        for result in results[:1]:
            reply.session_id = result.reply.session_id
            reply.set(result.reply.headers)
        reply.set({"CRP-Context-Strategy": BATCH})
        return token_in(reply)
    reply.cookie = results[0].reply.cookie
    reply.set({"CRP-Session-Binding": results[0].reply.headers.get("CRP-Session-Binding")})
    last, governed = min(reversed(ended), key=lambda one: one[1].settled.session_budget_micros)
    risk = max(one.decided.report.risk_level for _, one in ended)
    left = Micros(governed.settled.session_budget_micros)
    shown = (
        "CRP-Context-Session-Id",
        "CRP-Set-Session",
        "CRP-Context-Protocol-Version",
        "CRP-Provenance-Chain-Integrity",
    )
    reply.session_id = last.reply.session_id
    reply.set({name: last.reply.headers.get(name) for name in shown})
    reply.set(
        {
            "CRP-Context-Strategy": BATCH,
            "CRP-Safety-Hallucination-Risk": response_headers.word(common_pb2.RiskLevel, risk),
            "CRP-Agent-Safety-Budget": as_decimal(left),
            "CRP-Safety-Budget-Warning": budget_warning(left),
        }
    )
    return governed.settled.token
