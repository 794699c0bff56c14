"""Emergency actions while their kernel cannot be reached: recorded here, standing from then on, sealed once it can be (T8, docs/adr/0057).

A kernel of which something is recorded is asked nothing before that is sealed. A stop that is recorded lets nothing of its kernel pass,
whatever the store says: it was answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import structlog
from prometheus_client import Counter, Gauge

from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused, forbidden, unavailable
from interlock.domain.ids import SessionId
from interlock.domain.kernel.definition import checked_action, checked_key, checked_name, kernel_id_of
from interlock.domain.kernel.emergency import EmergencyEntry, KernelSeen, Spool, stands
from interlock.domain.session.token import claimed
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.keys.emergency_keys import emergency_keys
from interlock.runtime.rpc.kernels.seen import KernelsSeen, merged
from interlock.runtime.rpc.kernels.spool import SpoolFile
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

R = TypeVar("R")

RECORDED = Counter(
    "interlock_kernel_emergencies_recorded",
    "Emergency actions that were recorded here while their kernel could not be reached.",
)
UNSEALED = Gauge(
    "interlock_kernel_emergencies_unsealed", "Emergency actions that are recorded here and not sealed yet, the stuck ones too."
)  # fmt: skip
STUCK = Gauge(
    "interlock_kernel_emergencies_stuck", "Recorded emergency actions that cannot be sealed: they need a person."
)
DOUBTED = Gauge(
    "interlock_kernel_emergencies_doubted",
    "1 while recorded emergency actions were changed by others, and nobody has looked: nothing is permitted.",
)

PERMITTING = frozenset({"execute", "permit", "lease", "evaluate"})
"""What a stopped kernel does not permit. Everything else settles, undoes or reads, and goes on after a stop."""
REFRESHED_S = 300.0
"""How old what is known of a kernel may be before it is read anew: others may have registered something."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0

_TRUNCATED = "KERNEL_RECORD_TRUNCATED"
_FOR_A_PERSON = frozenset({
    "KERNEL_NOT_FOUND", "KERNEL_EMERGENCY_UNKNOWN", "KERNEL_CHILD_UNKNOWN", "KERNEL_KEY_REUSED", "KERNEL_PERMIT_ABORTED",
    "KERNEL_EMERGENCY_PASSED", "KERNEL_RECORDED_INVALID", "KERNEL_RECORD_BROKEN", _TRUNCATED,
})  # fmt: skip
"""Refusals that no later try cures. Everything else may be over soon: it is tried again."""


@dataclass(frozen=True)
class KernelOwner:
    """Whose kernel it is: the caller's scope, the root of a session tree or nothing, and its name."""

    scope: str
    root: str
    kernel: str

    @property
    def kernel_id(self) -> SessionId:
        """Id of its chain."""
        return kernel_id_of(self.scope, self.root, self.kernel)


Append = Callable[[EmergencyEntry], Awaitable[kernel_pb2.Verdict]]
"""Has a recorded action decided and sealed."""
Describe = Callable[[KernelOwner], Awaitable[object]]
"""Reads a kernel, and has what it says learned."""


def unreachable(refused: Refused) -> bool:
    """Tell whether a refusal says that a kernel cannot be reached now; one whose record was removed never can be again."""
    return refused.kind in {Kind.UNAVAILABLE, Kind.TIMEOUT} and refused.reason != _TRUNCATED


class Emergencies:
    """What was recorded in the folder of this process, and what it knows of kernels."""

    def __init__(self, settings: Settings, append: Append, describe: Describe, *, clock: Clock = system_clock) -> None:
        folder, keys = settings.emergency_dir or settings.state_dir / "emergencies", emergency_keys(settings)
        self.file, self.seen = SpoolFile(folder, keys, settings.emergency_bytes), KernelsSeen(folder, keys)
        self._append, self._describe, self._clock = append, describe, clock
        self._reach_s = settings.emergency_reach_s
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="emergencies")
        """A thread of its own: an emergency waits for nobody else's work."""
        self._learning = asyncio.Lock()
        self._fresh: dict[KernelOwner, float] = {}
        self._sealing: dict[str, asyncio.Task[None]] = {}
        self._draining: asyncio.Task[None] | None = None
        self._behind: set[asyncio.Task[Any]] = set()
        self._shown: tuple[Spool, bool] | None = None
        """What the metrics say."""

    def look(self) -> Spool:
        """Return what is recorded here, and have it sealed in the background where there is something."""
        try:
            spool = self.file.look()
        except OSError as error:
            raise unavailable("KERNEL_EMERGENCIES_UNREADABLE", f"{self.file.folder}: {type(error).__name__}") from None
        if self._shown is None or self._shown[0] is not spool or self._shown[1] != self.file.doubted:
            self._counted(spool)
        if spool.open and self._draining is None and spool.kernels_due():
            self._draining = asyncio.create_task(self._drain())
            self._draining.add_done_callback(self._drained)
        return spool

    async def before(self, kernel_id: str, what: str, request: Any) -> None:
        """Have what is recorded of a kernel sealed before it is asked anything.

        Refused with KERNEL_STOPPED_HERE where a recorded stop stands, with KERNEL_EMERGENCY_FIRST where it takes too long, as sealing is
        refused, and with KERNEL_EMERGENCIES_DOUBTED where nobody can tell whether a stop stands.
        """
        spool = self.look()
        if self.file.doubted and what in PERMITTING:
            raise _doubted()
        if spool.open and spool.of_kernel(kernel_id):
            try:
                await asyncio.wait_for(self._sealed(kernel_id), self._reach_s)
            except (Refused, TimeoutError) as failed:
                self.after(kernel_id, what, request)
                raise failed if isinstance(failed, Refused) else _first() from None
            self.after(kernel_id, what, request)

    def after(self, kernel_id: str, what: str, request: Any) -> None:
        """Refuse what a recorded stop does not let pass, with KERNEL_STOPPED_HERE; also where it was recorded while the store decided."""
        if what not in PERMITTING or not self.file.spool.open:
            return
        stops = [one for one in self.file.spool.of_kernel(kernel_id) if one.stop]
        if not stops:
            return
        seen = self.seen.find(kernel_id)
        if what == "evaluate" and seen and request.action in seen.emergencies:
            return  # always allowed
        if stands(stops, request.child, seen):
            raise forbidden(
                "KERNEL_STOPPED_HERE", "the kernel was stopped; that is recorded here and not sealed yet, and nothing more is permitted"
            )  # fmt: skip

    async def learn(self, owner: KernelOwner, token: str, what: str, request: Any, answer: session_pb2.StepKernelResponse) -> None:  # fmt: skip
        """Learn from an answer, which is sealed, what has to be known of its kernel while that cannot be asked."""
        told = _told(what, request, answer)
        if told is not None or token:
            coming = self._kept(owner, token, *(told or ((), {})))
            await coming if told else self._later(coming)
        now = time.monotonic()
        if what == "describe" or (what == "open" and answer.opened.created):
            self._note_fresh(owner, now)
        elif self._fresh.get(owner, 0.0) < now:
            self._note_fresh(owner, now)
            self._later(self._refreshed(owner))

    async def record(self, scope: str, token: str, root: str | None, request: kernel_pb2.EmergencyRequest) -> kernel_pb2.Verdict:  # fmt: skip
        """Record an emergency action here, durably; *root* is ``None`` where the token could not be verified now.

        Refused with KERNEL_EMERGENCY_UNKNOWN_HERE where this process never saw it, or the token, in that kernel; with
        KERNEL_KEY_REUSED, KERNEL_EMERGENCIES_FULL or KERNEL_EMERGENCY_UNRECORDED.
        """
        checked_key(request.key)
        checked_action(request.action)
        if request.child:
            checked_name(request.child)
        seen = await self._on_disk(self._known, scope, token, root, request.kernel)
        if seen is None or request.action not in seen.emergencies or (request.child and request.child not in seen.children):  # fmt: skip
            raise unavailable(
                "KERNEL_EMERGENCY_UNKNOWN_HERE",
                "the kernel cannot be reached, and this sidecar has seen no emergency action of this id, or no such child, in it",
            )
        now = self._clock()
        entry = EmergencyEntry(
            spool="", number=0, kernel_id=seen.kernel_id, scope=seen.scope, root=seen.root, kernel=seen.kernel,
            action=request.action, stop=request.stop, child=request.child, key=request.key, at_ms=now // 1000, signed_by="",
        )  # fmt: skip
        # Whoever hangs up meanwhile does not take it back.
        kept = await asyncio.shield(self._later(self._recorded(entry, now)))
        return kernel_pb2.Verdict(approved=True, recorded_at_ms=kept.at_ms)

    async def close(self) -> None:
        """End what goes on behind the answers. What is not sealed is there at the next start."""
        tasks = [*self._behind, *self._sealing.values(), *filter(None, [self._draining])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._disk.shutdown(wait=False)

    async def _on_disk(self, call: Callable[..., R], *given: Any) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._disk, call, *given)

    async def _recorded(self, entry: EmergencyEntry, now_us: int) -> EmergencyEntry:
        kept = await self._on_disk(self.file.record, entry, now_us)
        await failpoints.reached("kernel.after_record")
        RECORDED.inc()
        what = "stop" if kept.stop else "action"
        log.warning("kernel.emergency_recorded", kernel_id=kept.kernel_id, number=kept.number, what=what)
        self._counted(self.look())
        return kept

    def _known(self, scope: str, token: str, root: str | None, kernel: str) -> KernelSeen | None:
        if root is not None:
            return self.seen.find(kernel_id_of(scope, root, kernel))
        with contextlib.suppress(Refused):
            if claimed(token).expires_at * 1_000_000 > self._clock():
                found = [one for one in self.seen.owner(scope, token) if one.kernel == kernel]
                return found[0] if len(found) == 1 else None
        return None

    def _sealed(self, kernel_id: str) -> Awaitable[None]:
        """Seal what is recorded of a kernel, in order; concurrent callers share it, and it goes on where they leave."""
        task = self._sealing.get(kernel_id)
        if task is None:
            task = self._sealing[kernel_id] = asyncio.create_task(self._seal(kernel_id))
            task.add_done_callback(partial(self._ended, kernel_id))
        return asyncio.shield(task)

    def _ended(self, kernel_id: str, task: asyncio.Task[None]) -> None:
        self._sealing.pop(kernel_id, None)
        if not task.cancelled():
            task.exception()  # told to whoever waits; the others ask again

    async def _seal(self, kernel_id: str) -> None:
        for entry in self.file.spool.due(kernel_id):
            stuck = ""
            try:
                verdict = await self._append(entry)
                stuck = "" if verdict.approved else "KERNEL_REJECTED"
            except Refused as refused:
                if refused.reason not in _FOR_A_PERSON:
                    raise
                stuck = refused.reason
            await failpoints.reached("kernel.after_append")
            if stuck:
                log.error("kernel.emergency_stuck", kernel_id=kernel_id, number=entry.number, reason=stuck)
                await self._on_disk(partial(self.file.note, entry.number, "stuck", reason=stuck))
            else:
                log.info("kernel.emergency_sealed", kernel_id=kernel_id, number=entry.number, sequence=verdict.sequence)
                await self._on_disk(partial(self.file.note, entry.number, "sealed", sequence=verdict.sequence))
            self._counted(self.file.spool)

    async def _drain(self) -> None:
        """Seal what is recorded of every kernel, until nothing is left that can be."""
        pause = SHORTEST_PAUSE_S
        while due := self.file.look().kernels_due():
            self._counted(self.file.spool)
            found = await asyncio.gather(*map(self._sealed, due), return_exceptions=True)
            if any(isinstance(one, BaseException) for one in found):
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)

    def _drained(self, task: asyncio.Task[None]) -> None:
        self._draining = None
        if not task.cancelled() and (failed := task.exception()):
            log.error("kernel.emergencies_undrained", error=type(failed).__name__)

    def _counted(self, spool: Spool) -> None:
        self._shown = (spool, self.file.doubted)
        UNSEALED.set(len(spool.open))
        STUCK.set(len(spool.stuck))
        DOUBTED.set(1 if self.file.doubted else 0)

    async def _kept(self, owner: KernelOwner, token: str, emergencies: tuple[str, ...], children: dict[str, str]) -> None:  # fmt: skip
        async with self._learning:
            held = self.seen.find(owner.kernel_id)
            known = held or KernelSeen(owner.kernel_id, owner.scope, owner.root, owner.kernel)
            new = self.seen.with_token(merged(known, emergencies=emergencies, children=children), token)
            if new == held:
                return
            if new.emergencies:
                await self._on_disk(self.seen.keep, new)
            else:
                self.seen.keep(new)  # in memory alone

    async def _refreshed(self, owner: KernelOwner) -> None:
        with contextlib.suppress(Refused):  # the next call tries again
            await self._describe(owner)
            return
        self._fresh.pop(owner, None)

    def _note_fresh(self, owner: KernelOwner, now: float) -> None:
        if len(self._fresh) >= 10_000:
            del self._fresh[next(iter(self._fresh))]
        self._fresh[owner] = now + REFRESHED_S

    def _later(self, coming: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(coming)
        self._behind.add(task)
        task.add_done_callback(self._left)
        return task

    def _left(self, task: asyncio.Task[Any]) -> None:
        self._behind.discard(task)
        if not task.cancelled():
            task.exception()  # told to whoever waits; dropped where nobody does


def _told(what: str, request: Any, answer: session_pb2.StepKernelResponse) -> tuple[tuple[str, ...], dict[str, str]] | None:  # fmt: skip
    """Return the emergency actions and children that an answer vouches for; ``None`` where it tells of neither."""
    if what == "open":  # it was joined: each action of the request is there as it says
        return tuple(one.id for one in request.definition.actions if one.emergency), {}
    if what == "describe":
        actions = answer.described.definition.actions
        return tuple(one.id for one in actions if one.emergency), {one.name: one.parent for one in answer.described.children}  # fmt: skip
    if what == "open_child" and answer.verdict.approved:
        return (), {request.child: request.parent}
    if what == "emergency" and answer.verdict.approved:
        return (request.action,), {}
    return None


def _doubted() -> Refused:
    return unavailable(
        "KERNEL_EMERGENCIES_DOUBTED",
        "emergency actions that were recorded here were changed by others: nothing is permitted until a person has looked",
        retry_after_ms=0, hint="interlock kernel emergencies, on the machine of the sidecar",
    )  # fmt: skip


def _first() -> Refused:
    return unavailable("KERNEL_EMERGENCY_FIRST", "an emergency action that was recorded here has to be sealed first")
