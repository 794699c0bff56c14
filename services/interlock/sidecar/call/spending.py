"""What the model calls of a window cost: reserved before the provider is asked, counted after it, settled with the window (KRN-9).

Where no limit stands, nothing is reserved and no service is asked: calls are only counted. Where one stands, the most that a call
can cost is reserved and on record before it is made. What the provider did not count is charged as it was reserved.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import structlog
from prometheus_client import Counter

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.errors import Refused
from interlock.domain.ids import ENTROPY_BYTES, mint
from interlock.domain.session import prices
from interlock.domain.session.prices import Counted, Price
from interlock.domain.session.session_policy import limits_in
from interlock.domain.session.spending import NOTHING, UNLIMITED, Amount, SpendingLimits
from interlock.runtime import failpoints
from interlock.runtime.pictures.recent import RECENT
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.telemetry import BoundedWords
from interlock.sidecar.call.prices import Prices
from interlock.sidecar.openai import strictjson
from interlock.sidecar.trail import spending_events
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

TOKENS = Counter("interlock_spending_tokens", "Tokens that model calls were charged, by agent type.", ["agent_type"])
USD = Counter(
    "interlock_spending_usd_micros",
    "What model calls were charged, millionths of a US dollar, by agent type.",
    ["agent_type"],
)
UNCOUNTED = Counter(
    "interlock_spending_uncounted",
    "Model calls that were charged at their upper bound: no usage came with the answer, or no answer.",
)
EXCEEDED = Counter(
    "interlock_spending_exceeded", "Model calls that the provider counted higher than their reservation."
)
AGENT_TYPES = BoundedWords(100)

_UNBILLED = frozenset({"UPSTREAM_UNAVAILABLE", "UPSTREAM_KEY_REJECTED", "UPSTREAM_REJECTED", "UPSTREAM_RATE_LIMITED"})
"""Refusals of a provider that was not reached, or that said no to the request: nothing was generated."""
_UNBILLED_STATUS = frozenset({"500", "503", "529"})


@dataclass
class ModelCall:
    """One model call: the most that it can cost, and what it did cost once that is known."""

    body: Mapping[str, Any]
    price: Price | None
    """``None``: no provider is asked."""
    unbounded: int
    cost: Amount | None = None
    _most: Amount | None = None

    @classmethod
    def embedding(cls, body: Mapping[str, Any], price: Price) -> Self:
        """Return a call for embeddings, which has no output. A token that is given as a number is longer than a byte in it."""
        return cls(body, price, 0, _most=prices.upper(len(strictjson.dumps(body)), 0, price))

    @property
    def most(self) -> Amount:
        """Its upper bound."""
        if self.price is None:
            return NOTHING
        if self._most is None:
            size = len(strictjson.dumps(self.body))
            self._most = prices.most_of(self.body, size, self.price, self.unbounded)
        return self._most

    @property
    def amount(self) -> Amount:
        """What it comes to as far as that is known."""
        return self.most if self.cost is None else self.cost

    def answered(self, usage: Mapping[str, Any]) -> None:
        """Note what the provider counted. A usage that is not there leaves the upper bound."""
        if self.price is None:
            self.cost = NOTHING
        elif found := prices.counted(usage):
            self.cost = prices.amount_of(found, self.price)
            if self._most is not None and (self.cost | self._most) != self._most:
                EXCEEDED.inc()
        else:
            UNCOUNTED.inc()

    def embedded(self, tokens: int | None) -> None:
        """Note how many tokens of embeddings the provider counted, if it did."""
        if tokens and self.price is not None:
            self.cost = prices.amount_of(Counted(tokens), self.price)
        else:
            UNCOUNTED.inc()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, at: TracebackType | None
    ) -> None:
        if failure is None:
            return
        status = failure.metadata.get("upstream_status") if isinstance(failure, Refused) else None
        if isinstance(failure, Refused) and (failure.reason in _UNBILLED or status in _UNBILLED_STATUS):
            self.cost = NOTHING
        elif self.cost is None and self.price is not None:
            UNCOUNTED.inc()


@dataclass
class WindowSpending:
    """What all model calls of one window come to."""

    peers: Peers
    prices: Prices
    unbounded: int
    opened: session_pb2.OpenedWindow
    limits: SpendingLimits
    """What its policy lets the session and all below it spend."""
    reply: ResponseHeaders
    _calls: list[ModelCall] = field(default_factory=list)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _reserved: Amount | None = None
    _left: SpendingLimits = UNLIMITED

    @property
    def total(self) -> Amount:
        """What they come to as far as that is known."""
        return sum((call.amount for call in self._calls), NOTHING)

    async def begin(self, body: Mapping[str, Any], deadline: Deadline) -> ModelCall:
        """Return a call that may be made now. Refused with SPENDING_LIMIT or MODEL_PRICE_UNKNOWN, before the provider is asked."""
        return await self.add(
            ModelCall(body, self.prices.of(str(body["model"])) if body else None, self.unbounded), deadline
        )

    async def embedding(self, body: Mapping[str, Any], deadline: Deadline) -> ModelCall:
        """Return a call for embeddings that may be made now, refused as ``begin`` is."""
        return await self.add(ModelCall.embedding(body, self.prices.of(str(body["model"]))), deadline)

    async def add(self, call: ModelCall, deadline: Deadline) -> ModelCall:
        """Return *call* once it may be made: where a limit stands, when its upper bound is reserved."""
        if call.price is None or not (self.opened.spending_limited or self.limits):
            self._calls.append(call)
            return call
        async with self._turn:
            await self._reserve(self.total + call.most, deadline)
            self._calls.append(call)
        return call

    async def _reserve(self, amount: Amount, deadline: Deadline) -> None:
        """Reserve so much for the whole window, and put it on record, before the call is made."""
        before, self._reserved = self._reserved, amount
        try:
            self._left = _left(await self.peers.session.spend_window(self._request(amount, final=False), deadline))
        except Refused as refused:
            if refused.reason == "SPENDING_LIMIT":
                self._reserved = before
                resource, left = refused.metadata["resource"], int(refused.metadata["left"])
                told = SpendingLimits(**{resource: left})
                self.reply.set({"CRP-Spending-Left": left_text(told)})
            raise
        noted = spending_events.reserved(amount, self.limits)
        await self.peers.audit.record(self.opened.session_id, self.opened.window_id, [noted], deadline)
        await failpoints.reached("sidecar.after_reserve")

    def settled(self) -> None:
        """Count what was charged, and tell what is left, as it was when the last reservation was made."""
        amount, agent_type = self.total, AGENT_TYPES.label(self.reply.agent_type)
        if amount == NOTHING:
            return
        TOKENS.labels(agent_type).inc(amount.tokens)
        USD.labels(agent_type).inc(amount.usd)
        RECENT.spent(usd_micros=amount.usd, tokens=amount.tokens)
        if self._left and self._reserved is not None:
            back = Amount(self._reserved.tokens - amount.tokens, self._reserved.usd - amount.usd)
            self.reply.set({"CRP-Spending-Left": left_text(_raised(self._left, back))})

    async def close(self) -> None:
        """Charge what the calls came to of a window that will not be sealed. A failure is logged: the reservation then stays.

        Without a reservation there is nothing to take its place in the session; the provider is paid all the same, so it is counted.
        """
        if self._reserved is None:
            self.settled()
            return
        amount, opened, deadline = self.total, self.opened, Deadline(self.peers.session.timeout_s)
        try:
            noted = [spending_events.charged(amount)]
            await self.peers.audit.record(opened.session_id, opened.window_id, noted, deadline)
            await self.peers.session.spend_window(self._request(amount, final=True), deadline)
        except Refused as refused:
            log.warning(
                "spending.left_reserved",
                session_id=opened.session_id,
                window_id=opened.window_id,
                reason=refused.reason,
            )
            return
        self.settled()

    def _request(self, amount: Amount, *, final: bool) -> session_pb2.SpendWindowRequest:
        opened = self.opened
        return session_pb2.SpendWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id,
            ancestor_session_ids=opened.ancestor_session_ids, tokens=amount.tokens, usd_micros=amount.usd,
            limit_tokens=self.limits.tokens, limit_usd_micros=self.limits.usd, final=final,
        )  # fmt: skip


@dataclass(frozen=True)
class ModelSpending:
    """Makes what counts the model calls of a window."""

    peers: Peers
    prices: Prices
    unbounded: int

    def of(self, opened: session_pb2.OpenedWindow, policy_text: str, reply: ResponseHeaders) -> WindowSpending:
        """Return what counts the calls of a window under the policy of its call."""
        return WindowSpending(self.peers, self.prices, self.unbounded, opened, limits_in(policy_text), reply)

    def apart(self, session: session_pb2.Session, reply: ResponseHeaders) -> WindowSpending:
        """Return what counts a call of a session that is no window. Its cost is always reserved, and charged in its place."""
        stands_for = session_pb2.OpenedWindow(
            session_id=session.session_id, root_session_id=session.root_session_id,
            window_id=mint("crp_win_", os.urandom(ENTROPY_BYTES)), ancestor_session_ids=session.ancestor_session_ids,
            spending_limited=True,
        )  # fmt: skip
        return self.of(stands_for, session.policy_text, reply)


def _left(answer: session_pb2.SpendWindowResponse) -> SpendingLimits:
    return SpendingLimits(
        answer.left_tokens if answer.HasField("left_tokens") else None,
        answer.left_usd_micros if answer.HasField("left_usd_micros") else None,
    )


def _raised(left: SpendingLimits, back: Amount) -> SpendingLimits:
    """Return what is left once so much of a reservation came back; where more was spent it is less."""
    return SpendingLimits(
        None if left.tokens is None else max(0, left.tokens + back.tokens),
        None if left.usd is None else max(0, left.usd + back.usd),
    )


def left_text(left: SpendingLimits) -> str | None:
    """Return what is left as a header tells it; ``None`` where no limit stands."""
    tokens = [] if left.tokens is None else [f"tokens={left.tokens}"]
    usd = [] if left.usd is None else [f"usd={as_decimal(Micros(left.usd))}"]
    return ", ".join([*tokens, *usd]) or None
