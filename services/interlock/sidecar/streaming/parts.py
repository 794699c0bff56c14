"""An answer released part by part while the provider writes it: analysed, decided, on record, and only then let go (BUD-11, API-4).

A part is one unit or more, judged with all that came before it. What may not pass now waits for what follows: the verdict over the
whole is the one that counts. What no continuation can cure ends the stream at once. Before the first part leaves, the session holds
the most that the window may cost. Where that cannot be had nothing leaves before the whole is judged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from prometheus_client import Counter, Histogram

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.binding.rank import Rank
from interlock.domain.breaker import BreakerState
from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.directives import Oversight, Policy
from interlock.domain.policy.policy_text import parse
from interlock.runtime import failpoints
from interlock.runtime.clock import system_clock
from interlock.runtime.rpc.peer import WriteFailedError
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.admission import Admitted
from interlock.sidecar.call.binding import identified
from interlock.sidecar.call.call import Call, Run
from interlock.sidecar.call.live import AnswerPart, Reader
from interlock.sidecar.openai import completion, fields
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.requests import Round, ceiling_of
from interlock.sidecar.streaming.lease import StreamLease
from interlock.sidecar.streaming.units import whole_until
from interlock.sidecar.trail import stream_events
from interlock.sidecar.trail.stream_events import RunningHash

log = structlog.get_logger()

PARTS = Counter(
    "interlock_stream_parts", "PartRelease of answers by what became of them: released, withheld, cut.", ["outcome"]
)
FIRST_PART = Histogram("interlock_stream_first_part_seconds", "Time from the call to its first released part, seconds.")

GROWTH = 2.0
"""How much longer a text is than the one judged before it, so that its judgements together cost a bounded multiple of one."""

LEAST, WAIT_S = 200, 1.0
"""Characters that a text has more than the one judged before it, about what a provider writes in a second, unless that second is over: single
short sentences are not worth a judgement each, but the first is. After a second of silence what is whole is judged, whatever its length."""

TAIL = 16
"""A tail without a unit is searched again once it has grown by this fraction: one that comes byte by byte costs no more than that."""

LASTING = frozenset({
    "UNGROUNDED_CLAIM", "SOURCE_NOT_TRUSTED", "PARAMETRIC_CONTENT", "PII_DETECTED", "FABRICATION_DETECTED", "UNACCEPTABLE_EU_AI_ACT",
})  # fmt: skip
"""Reasons of a halt that no continuation cures: what was found stays in the text."""

Judge = Callable[[Completion], Awaitable[tuple[dpe_pb2.Report, policy_pb2.Decision]]]
"""Analyses and decides about what there is of an answer."""

_NEEDS_THE_WHOLE = ("require_quality", "require_flow", "require_completeness", "upgrade_on_risk")


def may_stream(call: Call, admitted: Admitted, settings: Settings) -> bool:
    """Tell whether parts of a call's answer may leave before the whole is judged.

    No, where the breaker is not closed, a person may have to review it, something may rewrite it, the policy asks for what only a
    whole has, the window is one of several, or its session is below another one.
    """
    opened, policy = admitted.opened, admitted.policy.policy_text
    return (
        call.live is not None
        and not call.shape
        and admitted.breaker is BreakerState.CLOSED
        and opened.pattern in {"", "LINEAR"}
        and not opened.ancestor_session_ids
        and not settings.enabled_remedies
        and not settings.review_required
        and not call.asked.accept_quality
        and not (policy and _needs_the_whole(parse(policy)))
    )


def _needs_the_whole(policy: Policy) -> bool:
    reviewed = policy.oversight is not None and policy.oversight >= Oversight.HUMAN_REVIEW
    return reviewed or any(getattr(policy, name) for name in _NEEDS_THE_WHOLE)


def streamed(settings: Settings, peers: Peers, run: Run, admitted: Admitted, judge: Judge) -> PartRelease | None:
    """Return what lets parts of a call's answer go; ``None`` where they may not leave before the whole is judged."""
    return PartRelease(settings, peers, run, admitted, judge) if may_stream(run.call, admitted, settings) else None


def is_due(known: int, judged: int, waited_s: float) -> bool:
    """Tell whether whole units up to a character are judged now, where those up to another were judged some seconds ago."""
    if not judged:
        return known > 0
    return known >= judged * GROWTH and (known >= judged + LEAST or waited_s >= WAIT_S)


class PartRelease:
    """Releases the parts of one answer."""

    def __init__(self, settings: Settings, peers: Peers, run: Run, admitted: Admitted, judge: Judge) -> None:
        assert run.call.live is not None
        self._settings, self._peers, self._run, self._admitted, self._judge = settings, peers, run, admitted, judge
        self._live, self._running = run.call.live, RunningHash()
        self._lease = StreamLease(settings, peers, run, admitted.opened)
        self._known = self._judged = self._looked = 0
        self._judged_at = 0.0
        self._seen = AnswerPart()
        self._whole_only = False
        self.ended = False
        """Whether the provider's answer came to its end: what it counted before that is not what the answer cost."""

    async def answer(self, body: Mapping[str, Any], _timeout_s: float) -> Completion:
        """Return the provider's answer, of which parts may have left by then. It may take ``stream_timeout_s``.

        A provider that fails, or a caller that leaves, after the first part: what there is of the answer is the answer.
        """
        stream = self._live.reader(body)
        reading = asyncio.ensure_future(self._read(body, stream))
        reading.add_done_callback(lambda _: stream.changed.set())
        self._run.asking.add(reading)
        if self._run.caller_left:
            reading.cancel()
        try:
            while not (reading.done() or self._live.cut or self._live.stopped):
                await self._look(stream, silent=await self._silence(stream))
            answer = await self._ended(stream, reading)
            self.ended = stream.done
        finally:
            reading.cancel()
            self._run.asking.discard(reading)
        fields.count(answer.dropped)
        return answer

    async def _silence(self, stream: Reader) -> bool:
        """Wait for more, and tell whether it is the provider that keeps whole units waiting."""
        try:
            async with asyncio.timeout(WAIT_S if self._known > self._judged and not self._whole_only else None):
                await stream.changed.wait()
        except TimeoutError:
            return True
        stream.changed.clear()
        return False

    async def _read(self, body: Mapping[str, Any], stream: Reader) -> None:
        async with self._lease.kept():
            await self._live.ask(body, self._settings.stream_timeout_s, stream)

    async def _ended(self, stream: Reader, reading: asyncio.Future[None]) -> Completion:
        if self._live.cut:
            return self._so_far(self._seen)
        try:
            if not self._live.stopped:
                await reading
            return self._fitting(stream.completion(broken_off=self._live.stopped is not None))
        except asyncio.CancelledError:
            self._stop(Refused(Kind.TIMEOUT, "CALLER_LEFT", "the caller left before the model answered"))
        except Refused as refused:
            self._stop(refused)
        try:
            return self._fitting(stream.completion(broken_off=True))
        except Refused:  # what came last makes no answer: it ends with what was judged of it
            return self._so_far(self._seen)

    def _so_far(self, part: AnswerPart) -> Completion:
        return completion.begun(self._run.call.body["model"], part.text, part.reasoning)

    def _fitting(self, answer: Completion) -> Completion:
        """Return the whole answer, which goes on from what has left. Refused as malformed where it does not.

        Reasoning that comes behind the text has no place any more once text has left: it is left out and noted.
        """
        left, choice = self._live.left, answer.choices[0]
        message = choice["message"]
        said, reasoning = message["content"] or "", message.get("reasoning_content") or ""
        if not (self._run.begun and left.text):
            return answer
        if not said.startswith(left.text) or not reasoning.startswith(left.reasoning):
            raise malformed("TEXT")
        if reasoning == left.reasoning:
            return answer
        kept = {name: value for name, value in message.items() if name != "reasoning_content"}
        kept |= {"reasoning_content": left.reasoning} if left.reasoning else {}
        dropped = tuple(sorted({*answer.dropped, "reasoning"}))
        return completion.assembled(answer.completion, [{**choice, "message": kept}], answer.usage, dropped=dropped)

    def _stop(self, refused: Refused) -> None:
        """Note why the answer breaks off; without a released part there is no answer."""
        if not self._run.begun:
            raise refused
        self._live.stopped = self._live.stopped or refused

    async def _look(self, stream: Reader, *, silent: bool) -> None:
        """Judge what is new and whole of the answer, and let it go if it may pass; where the provider is *silent*, all there is."""
        said = stream.said
        if said is None or self._whole_only or stream.done or self._live.stopped:
            return
        text = said.text
        if not silent and (len(text) - self._looked) * TAIL < len(text) - self._known:
            return
        self._looked = len(text)
        self._known = whole_until(text, self._known)
        due = is_due(self._known, self._judged, time.monotonic() - self._judged_at)
        if not (due or (silent and self._known > self._judged)):
            return
        if self._live.left.text and said.reasoning != self._live.left.reasoning:
            self._whole_only = True  # it thinks again: what follows may rest on that
            return
        part = self._seen = AnswerPart(said.reasoning, text[: self._known])
        self._judged, self._judged_at = len(part.text), time.monotonic()
        try:
            report, decision = await self._judge(self._so_far(part))
        except Refused as refused:  # the whole may be judged all the same
            log.info("stream.whole", window_id=self._admitted.opened.window_id, reason=refused.reason)
            self._whole_only = True
            return
        if decision.action == policy_pb2.ACTION_DELIVER:
            await self._release(part, report)
        elif decision.halt_reason in LASTING:
            self._live.cut = True
            PARTS.labels("cut").inc()
        else:
            PARTS.labels("withheld").inc()

    async def _release(self, judged: AnswerPart, report: dpe_pb2.Report) -> None:
        """Put a part on record and let it go. Nothing that is not on record leaves."""
        first = not self._run.begun
        noted = [await self._hold()] if first else []
        if self._whole_only or self._run.caller_left:
            return
        left = self._live.left
        part = AnswerPart(judged.reasoning[len(left.reasoning) :], judged.text[len(left.text) :])
        before = self._running.copy()
        self._running.add(part.reasoning + part.text)
        noted.append(stream_events.part(self._running, report))
        opened = self._admitted.opened
        self._run.begun = True  # from here on the hold may be on record: only a seal ends it
        try:
            await self._peers.audit.record_part(
                opened.session_id, opened.window_id, [one for one in noted if one], self._run.deadline
            )
        except WriteFailedError as failed:
            self._running = before  # on record or not, it does not leave: the end tells what left
            if first and not failed.in_doubt:
                self._run.begun, self._whole_only = False, True
            else:
                self._stop(failed.refused)
            return
        await failpoints.reached("sidecar.after_part")
        if first:
            self._tell()
        self._live.left = judged
        PARTS.labels("released").inc()
        if not await self._live.outlet.put(part, timeout_s=self._run.deadline.left_s / 2):
            self._stop(Refused(Kind.TIMEOUT, "CALLER_LEFT", "the client did not take the parts of its answer"))

    async def _hold(self) -> audit_pb2.NewEvent | None:
        """Set the most that the window may cost aside, and return the event that says so. Where that is refused: no parts."""
        opened, deadline = self._admitted.opened, self._run.deadline
        hold, caller = opened.decrements.critical_micros, opened.caller_budget
        request = session_pb2.HoldWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id,
            hold_micros=hold, ceiling_micros=self._admitted.budget, caller_id=caller.caller_id, caller_period=caller.period,
        )  # fmt: skip
        try:
            await self._peers.session.hold_window(request, deadline)
        except Refused as refused:
            log.info("stream.whole", window_id=opened.window_id, reason=refused.reason)
            self._whole_only = True
            return None
        until_ms = system_clock() // 1000 + int((self._lease.longest.left_s + self._settings.rpc_timeout_s) * 1000)
        ceiling = ceiling_of(opened, self._run.call.asked.ceiling)
        return stream_events.begun(opened, hold=hold, ceiling=ceiling, until_ms=until_ms)

    def _tell(self) -> None:
        """Give the front what is known when the first part leaves."""
        run, live = self._run, self._live
        call, bound = run.call, self._admitted.bound
        told = {name: value for name, value in call.reply.headers.items() if name != "CRP-Set-Session"}
        if bound.rank is not Rank.TOKEN and (cookie := call.binding.cookie_for(self._admitted.opened.session_id)):
            told["set-cookie"] = cookie
        live.headers = told
        live.head = identified(self._so_far(AnswerPart()), self._admitted.opened.window_id)
        FIRST_PART.observe(time.perf_counter() - run.started)

    def end(self, last: Round) -> list[audit_pb2.NewEvent]:
        """Return what the trail says of the end, with the last part where the rest may leave. Sealed with the window."""
        if not self._run.begun:
            return []
        live = self._live
        left = live.stopped is not None and live.stopped.reason == "CALLER_LEFT"
        if last.decision.action != policy_pb2.ACTION_DELIVER or live.cut:
            ending = stream_events.CUT
        elif left:
            ending = stream_events.CALLER_LEFT
        else:
            ending = stream_events.BROKEN if live.stopped else stream_events.COMPLETE
        if ending == stream_events.COMPLETE:
            message = last.produced.answer.choices[0]["message"]
            rest = (message["content"] or "")[len(live.left.text) :]
            if rest:
                self._running.add(rest)
        return [stream_events.ended(self._running, ending)]
