"""Steps of kernels that have conditions in CEL: what the store would make of the state is looked at here, and the store told what they say.

The store decides, as ever: it shows the view of a step and writes nothing. The verdicts go back under the hash of that view, and count
where the step makes exactly that view again; where somebody else's action came between and changed what the conditions speak of, the
store shows the new one. Nothing that the caller says is part of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self
from weakref import WeakValueDictionary

from prometheus_client import Counter

from interlock.domain.errors import Refused, unavailable
from interlock.domain.ids import SessionId
from interlock.domain.kernel.cel.conditions import CelLanguage, verdicts
from interlock.domain.kernel.cel.names import digest, parted
from interlock.domain.kernel.state import LOOK, Stepped
from interlock.session.store.kernels.store import UNSAID, KernelStore

OPTIMISTIC = 6
"""How often a step is looked at again before a ticket is taken."""
LOOKS = 64
"""How often in all."""
TURN_MS, PATIENCE_S, PAUSE_S = 2_000, 4.0, 0.01
MOST_KNOWN = 256
"""Conditions of so many kernels are at hand; they never change."""

LOOKED = Counter(
    "interlock_kernel_conditions", "How often conditions in CEL were evaluated on what a step would make of a kernel."
)
AHEAD = "KERNEL_TICKET_AHEAD"
_ACTING = frozenset({"execute", "permit"})
_ANSWERED = frozenset({"OK", "FULL"})


class CelSteps:
    """Steps over one store."""

    def __init__(self, store: KernelStore, language: CelLanguage, now_ms: Callable[[], int]) -> None:
        self._store, self._language, self._now_ms = store, language, now_ms
        self._known: dict[str, str] = {}
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()

    async def step(self, kernel_id: SessionId, ask: Mapping[str, Any]) -> Stepped:
        """Decide what is asked. Refused with KERNEL_CEL_CONTENDED where others change what conditions speak of again and again."""
        found = await self._store.step(kernel_id, ask, self._now_ms())
        return await self._looked(kernel_id, ask, found) if _asks_back(found, ask) else found

    async def steps(self, kernel_id: SessionId, asks: Sequence[Mapping[str, Any]]) -> list[Stepped | Refused]:
        """Decide what is asked, each by itself. Those that are to be looked at come after the others, one by one.

        What is to be sealed is the same in all that are answered: what the last answer rests on.
        """
        found: list[Stepped | Refused] = [*await self._store.steps(kernel_id, asks, self._now_ms())]
        unsealed = next((one.unsealed for one in found if isinstance(one, Stepped) and one.status in _ANSWERED), ())
        in_hand = {name: asks[0][name] for name in UNSAID if name in asks[0]}
        for at, one in enumerate(found):
            if isinstance(one, Stepped) and _asks_back(one, asks[at]):
                found[at] = answer = await self._one_of_many(kernel_id, {**asks[at], **in_hand}, one)
                if isinstance(answer, Stepped) and answer.status in _ANSWERED:
                    unsealed = answer.unsealed
        return [
            replace(one, unsealed=unsealed) if isinstance(one, Stepped) and one.status in _ANSWERED else one
            for one in found
        ]

    async def _one_of_many(self, kernel_id: SessionId, ask: Mapping[str, Any], found: Stepped) -> Stepped | Refused:
        try:
            return await self._looked(kernel_id, ask, found)
        except Refused as refused:
            return refused

    async def _looked(self, kernel_id: SessionId, ask: Mapping[str, Any], found: Stepped) -> Stepped:
        """Tell the store what it asks back, until it decides. Steps of this process do so one after the other."""
        lock = self._locks.setdefault(kernel_id, asyncio.Lock())
        try:
            async with asyncio.timeout(PATIENCE_S), lock, _Turn(self._store, kernel_id, ask, self._now_ms) as turn:
                told: dict[str, str] = {}
                while found.status != LOOK or turn.looks < LOOKS:
                    if found.status == LOOK:
                        await turn.again()
                        told |= await self._verdicts(kernel_id, found.subject)
                    elif found.status == AHEAD and turn.ours:
                        await turn.wait(int(found.subject or "1"))
                    else:
                        turn.used = found.status == "OK"
                        return found
                    found = await self._store.step(kernel_id, {**ask, "told": told, **turn.ticket}, self._now_ms())
        except TimeoutError:
            pass
        raise unavailable(
            "KERNEL_CEL_CONTENDED",
            "others change what a condition speaks of again and again; try later",
            retry_after_ms=1000,
        )

    async def _verdicts(self, kernel_id: SessionId, view: str) -> dict[str, str]:
        """Return what the conditions say of a view, under its hash; nothing where the kernel has others by now."""
        conditions, shown = parted(view)
        text = self._known.get(conditions)
        if text is None:
            text = await self._store.conditions(kernel_id)
            if digest(text) != conditions:
                return {}
            if len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[conditions] = text
        LOOKED.inc()
        await asyncio.sleep(0)  # others get their turn between two that take long
        return {digest(view): verdicts(text, shown, self._language.matches)}


def _asks_back(found: Stepped, ask: Mapping[str, Any]) -> bool:
    """Tell whether a step is to be looked at, or to wait for a turn that the caller knows nothing of."""
    return found.status == LOOK or (found.status == AHEAD and _takes_turns(ask))


def _takes_turns(ask: Mapping[str, Any]) -> bool:
    """Tell whether turns are taken here: a caller that names a version or a ticket takes its own."""
    acts = ask["op"] in _ACTING and not ask.get("dry")
    return acts and not ask.get("ticket") and ask.get("version", "0") == "0"


class _Turn:
    """The place of one action in the line of those that others come before again and again."""

    def __init__(
        self, store: KernelStore, kernel_id: SessionId, ask: Mapping[str, Any], now_ms: Callable[[], int]
    ) -> None:
        self._store, self._kernel_id, self._now_ms = store, kernel_id, now_ms
        self.ours = _takes_turns(ask)
        self.looks, self._key = 0, ""
        self.used = False
        """Whether the action was decided, which uses a ticket up."""

    @property
    def ticket(self) -> dict[str, str]:
        """What is asked with it."""
        return {"ticket": self._key} if self._key else {}

    async def again(self) -> None:
        """Count a look, and take a ticket where there were many."""
        self.looks += 1
        if self.looks > OPTIMISTIC:
            await self._take()

    async def wait(self, ahead: int) -> None:
        """Wait for one's turn, with a ticket."""
        await self._take()
        await asyncio.sleep(PAUSE_S * min(ahead, 8))

    async def _take(self) -> None:
        if self._key or not self.ours:
            return
        key = f"cel-{uuid.uuid4().hex}"
        found = await self._asked("ticket", key, lifetime_ms=str(TURN_MS))
        self._key = key if found.status == "OK" and found.answer["approved"] == "1" else ""

    async def _asked(self, op: str, key: str, **more: str) -> Stepped:
        ask = {"op": op, "key": key, "digest": "", **more}
        return await self._store.step(self._kernel_id, ask, self._now_ms())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave the line where nothing was decided: others need not wait for the turn to run out."""
        if self._key and not self.used:
            with contextlib.suppress(Refused):
                await asyncio.shield(self._asked("return_ticket", uuid.uuid4().hex, ticket=self._key))
