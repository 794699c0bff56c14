"""The rounds of a governed call: dispatch, analyse, decide, and again while a remedy is left (SPEC-005 §18.5, §19).

What a round produces is not charged, sealed or released before the last one is decided (BUD-5). Policy says whether there is another;
the bounds on rounds and provider calls are kept here. A remedy replaces its draft only where it is better (ATT-10, docs/adr/0019).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain.breaker import BreakerState
from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.improvement import Axis, better_on, is_improvement, worse_on
from interlock.domain.policy.remedies import MOST_CONTINUATIONS, MOST_REDISPATCHES
from interlock.runtime import failpoints
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.runtime.telemetry import span
from interlock.sidecar import requests
from interlock.sidecar.admission.admission import Admitted, deficient
from interlock.sidecar.call.binding import identified
from interlock.sidecar.call.call import Run
from interlock.sidecar.call.verdict import checked_report
from interlock.sidecar.context import measures, packing, synthesis
from interlock.sidecar.context.packing import Packed
from interlock.sidecar.context.synthesis import EarlierAnswers
from interlock.sidecar.context.transfer import SUMMARISE, Transfers
from interlock.sidecar.openai import completion
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider import figures, grounding, remediation, strategies
from interlock.sidecar.provider.calls import ProviderCalls
from interlock.sidecar.provider.judged import judged, named
from interlock.sidecar.provider.strategies import PUSH, REFLEXIVE, Pass, Produced
from interlock.sidecar.requests import DecidedAnswer, RemedyState, Round
from interlock.sidecar.settlement.tool_calls import ActionTrials
from interlock.sidecar.trail import events, response_headers, trace_events, would
from interlock.sidecar.trail.response_headers import word
from interlock.sidecar.trail.would import REWRITE, WouldHave

log = structlog.get_logger()

REDISPATCHES = Counter("interlock_redispatch", "Remedies begun, by remedy.", ["remedy"])
DISCARDED = Counter("interlock_remedy_discarded", "Remedies whose answer was not better than the draft.", ["remedy"])

_NOTHING_TO_CHARGE = frozenset({events.GENERATE, SUMMARISE})
"""Passes before which there is no answer yet: a caller that leaves ends them."""
_KEPT_BACK = (policy_pb2.ACTION_DELIVER, policy_pb2.ACTION_HOLD, policy_pb2.ACTION_REJECT_QUALITY)
"""Final actions, the mildest first; a halt, and whatever is unknown, comes after them."""


class Rounds:
    """The rounds of one call."""

    def __init__(self, settings: Settings, peers: Peers, run: Run, admitted: Admitted, trials: ActionTrials) -> None:
        self._settings, self._peers, self._run, self._admitted, self._trials = settings, peers, run, admitted, trials
        self._call, self._window_id = run.call, admitted.opened.window_id
        self._prior: tuple[dpe_pb2.PriorWindow, ...] = ()
        self._context = Packed(run.call.body, run.call.envelope)
        self._instructions = remediation.Instructions()
        self._calls = ProviderCalls(settings.max_provider_calls)
        remediable = bool(run.call.body) and not settings.forbids_remedies
        self._tried = RemedyState(remediable=remediable, redispatches=0, continuations=0, stitched=False)
        self._parts: Any = None
        self._keeping, self._number, self._iteration, self._analysis_s = 0, 0, 0, 0.0

    async def dispatch(self) -> Produced:
        """Ask for the answer, once the chain that it continues was found to verify (SPEC-004 §16.4), and with its context."""
        strategy = self._initial()
        self._keeping = strategies.least_calls(strategy, self._choices)
        if self._call.body:
            self._calls.require(self._keeping, f"a {strategy} answer")
        if strategy == PUSH and self._call.live:
            from interlock.sidecar.streaming.parts import streamed  # on use: a sidecar without streams stays small

            self._parts = streamed(self._settings, self._peers, self._run, self._admitted, self._weigh)
        make = partial(self._ask, strategy)
        first = bool(self._parts) or synthesis.comes_first(self._call, self._admitted.opened)
        latest = self._settings.compared_windows
        # What earlier windows said comes from a verified chain alone: a broken one is refused before the provider is asked.
        earlier = await synthesis.read(self._peers, self._run, self._admitted, latest=latest)
        if first:
            await self._prepare(make, earlier)
        produced = await self._produce(strategy, self._context.body)
        if not first:
            await self._prepare(make, earlier)
        return produced

    async def _produce(self, strategy: str, body: Mapping[str, Any]) -> Produced:
        produced = await strategies.produce(strategy, partial(self._ask, strategy), body, self._calls)
        if produced.unresolved:
            self._run.noted.append(events.review_unresolved(produced.unresolved, self._calls.made))
        return produced

    @property
    def _choices(self) -> int:
        return int(self._call.body.get("n") or 1)

    def _initial(self) -> str:
        if not self._call.body:
            return PUSH
        breaker, asked = self._admitted.breaker, self._admitted.strategy
        strategy = strategies.initial(breaker, self._admitted.safety_mode, asked)
        if self._admitted.observed and strategy != asked:  # an answer that is only watched is not refined either
            self._run.would.append(WouldHave(REWRITE, breaker.name))
            return asked
        if strategy not in {PUSH, asked}:
            trigger = breaker.name if breaker is not BreakerState.CLOSED else "STRICT"
            self._run.noted.append(events.strategy_upgraded(PUSH, strategy, trigger))
        return strategy

    async def _prepare(self, make: Pass, earlier: EarlierAnswers) -> None:
        """Make the window's context of what was said before it. No summary of it is charged (BUD-5)."""
        call, opened = self._call, self._admitted.opened
        transfers = Transfers(make, self._fidelity, call.body, self._run.noted)
        given = await synthesis.given(earlier, call, opened, transfers, self._settings)
        self._context = packing.pack(call.body, call.envelope, opened, given, self._settings)
        self._prior = earlier.prior
        self._run.noted.extend(events.sub_agent_result(linked) for linked in self._context.linked)

    async def _fidelity(self, source: str, summary: str) -> float:
        request = dpe_pb2.CheckSummaryRequest(source=source, summary=summary, place_id=self._run.place_id)
        with span("crp.check_summary"):
            return await self._peers.dpe.check_summary(request, self._run.deadline)

    async def _ask(self, strategy: str, step: str, body: Mapping[str, Any]) -> Completion:
        """Make one provider call and note it. A caller that leaves cuts it short, unless an answer is there to charge."""
        run, call = self._run, self._call
        # A summary may not take the calls that the answer itself needs.
        self._calls.take(keeping=self._keeping if step == SUMMARISE else 0)
        dispatch, timeout_s = call.dispatch.made_by(strategy, body), self._provider_time()
        spent = await run.spending.begin(body, run.deadline)
        if strategy == REFLEXIVE and step in strategies.LOOP:
            self._iteration += 1
            run.noted.append(trace_events.loop_iteration(step, self._iteration, self._admitted.budget))
        run.noted.append(events.started(dispatch, step))
        run.dispatched = run.dispatched or step == events.GENERATE
        begun = time.perf_counter()
        host, model, shown = dispatch.provider, dispatch.model, bool(body) and self._settings.gen_ai_conventions
        measured = figures.ProviderCall("chat", host, model, conventions=shown)
        traced = span("crp.dispatch", provider=host, model=model, strategy=strategy, phase=step)
        with run.timed(), traced, measured, spent:
            parts = self._parts if step == events.GENERATE else None
            asking = asyncio.ensure_future((parts.answer if parts else call.model)(body, timeout_s))
            if parts is None and (step in _NOTHING_TO_CHARGE or self._number):
                run.asking.add(asking)
                if run.caller_left:
                    asking.cancel()
            try:
                answer = identified(await asking, self._window_id)
                measured.answered(answer.usage, answer.model)
                spent.answered(answer.usage if parts is None or parts.ended else {})
            except asyncio.CancelledError:
                asking.cancel()
                raise Refused(Kind.TIMEOUT, "CALLER_LEFT", "the caller left before the model answered") from None
            finally:
                run.asking.discard(asking)
        await failpoints.reached("sidecar.after_dispatch")
        took_ms = round((time.perf_counter() - begun) * 1000)
        run.usages += [answer.usage] if answer.completion else []
        run.noted.append(events.completed(_hash(answer.body), answer.tokens_used, took_ms, answer.dropped))
        return answer

    async def analyse(self, produced: Produced, flow_remediation: str = "") -> dpe_pb2.Report:
        """Analyse every output of an answer, and tell what was found in the response headers."""
        report = await self._judge(produced, flow_remediation)
        self._tell(produced, report)
        return report

    async def _weigh(self, answer: Completion) -> tuple[dpe_pb2.Report, policy_pb2.Decision]:
        """Analyse and decide what there is of an answer, as if it were all. Only the whole is told and noted."""
        report = await self._report(produced := Produced(answer, PUSH, "1/1"), "")
        return report, await self._decided(produced, report, replace(self._tried, remediable=False))

    async def _judge(self, produced: Produced, flow_remediation: str) -> dpe_pb2.Report:
        report = await self._report(produced, flow_remediation)
        self._run.noted.extend(events.of_report(report, no_store=self._call.asked.no_store))
        return report

    async def _report(self, produced: Produced, flow_remediation: str) -> dpe_pb2.Report:
        begun = time.perf_counter()
        request = requests.to_analyse(
            self._admitted, self._context, produced.answer.outputs, prior=self._prior,
            domain=self._settings.ai_domain, flow_remediation=flow_remediation, place_for=self._run.place_for,
            grounding_mode=self._call.asked.grounding_mode or self._settings.grounding_mode, place_id=self._run.place_id,
        )  # fmt: skip
        with span("crp.analyse"):
            report = await self._peers.dpe.analyze(request, self._run.deadline)
        self._analysis_s = max(self._analysis_s, time.perf_counter() - begun)
        report = requests.with_links(checked_report(report, produced.answer), self._context)
        measured = measures.measured(report, self._call, produced.answer, self._settings)
        return await self._trials.tried(measured, produced.answer)

    def _tell(self, produced: Produced, report: dpe_pb2.Report) -> None:
        reply, strategy = self._call.reply, strategies.shape_of(self._call) or produced.strategy
        reply.set(response_headers.of_strategy(strategy, produced.revision) | response_headers.of_report(report))
        reply.set(measures.of_context(report, self._context, produced.answer, self._call))

    async def decide(self, produced: Produced, report: dpe_pb2.Report) -> Round:
        """Ask policy what happens to an analysed answer, and tell it in the response headers."""
        decision = await self._decided(produced, report, self._possible(produced.answer))
        self._call.reply.set(response_headers.of_decision(decision))
        return Round(produced, report, decision)

    async def _decided(self, produced: Produced, report: dpe_pb2.Report, tried: RemedyState) -> policy_pb2.Decision:
        request = requests.to_decide(
            self._admitted, self._call.asked, report, tried=tried, strategy=produced.strategy,
            remedies=self._settings.enabled_remedies,
        )  # fmt: skip
        with span("crp.decide"):
            return self._trials.decided(await self._peers.policy.decide(request, self._run.deadline), report)

    def has_remedy(self, last: Round) -> bool:
        """Tell whether policy wants a remedy and one is left. Without one, the answer is not released."""
        return bool(self._calls.left) and self._tried.leaves(last.decision.action)

    def decided(self, last: Round) -> DecidedAnswer:
        """Return the last round's answer, with the usage of every provider call that led to it."""
        if self._call.body:
            self._calls.note()
        answer, usages = last.produced.answer, [*self._call.spent, *self._run.usages]
        if len(usages) > 1:
            answer = completion.assembled(answer.completion, answer.choices, completion.added(usages))
        if self._admitted.observed and deficient(self._settings, self._admitted.opened):
            self._run.would.append(would.DEFICIENT)
        self._run.would.extend(would.of_decision(last.decision))
        self._call.reply.set(would.header(self._run.would))
        self._run.noted.extend(self._parts.end(last) if self._parts else ())
        return DecidedAnswer(answer, last.produced.strategy, last.report, last.decision, self._context)

    def _possible(self, answer: Completion) -> RemedyState:
        """Return what was tried; what this answer, its caller or the time does not allow counts as tried."""
        run, tried, calls = self._run, self._tried, self._calls
        left_s = run.deadline.left_s - self._reserve_s
        if not tried.remediable or not calls.left or run.caller_left or run.begun or left_s < run.slowest_s:
            self._tried = replace(tried, remediable=False)
            return self._tried
        passes = strategies.least_calls(self._again(REFLEXIVE), self._choices)
        cut_off = remediation.cut_off(answer, self._context.body)
        joinable = remediation.joinable(answer, self._context.body) is not None
        return RemedyState(
            remediable=True,
            redispatches=tried.redispatches if left_s >= passes * run.slowest_s else MOST_REDISPATCHES,
            continuations=tried.continuations if cut_off else MOST_CONTINUATIONS,
            stitched=tried.stitched or not joinable or not self._prior,
        )

    def _again(self, wanted: str) -> str:
        """Return the strategy of a re-dispatch: *wanted*, or a plain one where the calls that are left do not hold it."""
        strategy = wanted if wanted in {PUSH, REFLEXIVE} else REFLEXIVE
        return strategy if strategies.least_calls(strategy, self._choices) <= self._calls.left else PUSH

    async def remedy(self, last: Round) -> Round:
        """Try the remedy that was decided.

        What it brings takes the place of the draft where it is better, and worse on nothing that was judged. Otherwise,
        and where the remedy or the analysis of its answer fails, the draft stands and is decided by itself.
        """
        self._number += 1
        at, spent, remedies = len(self._run.noted), len(self._run.usages), remediation.named(last.decision)
        for remedy in remedies:
            REDISPATCHES.labels(remedy).inc()
        try:
            produced, flow = await self._remedied(last, at, spent)
            better = await self._better(last, produced, flow) if produced else None
        except Refused as failed:
            log.info("remedy.failed", window_id=self._window_id, reason=failed.reason, number=self._number)
            self._run.noted.append(
                events.dispatch_failed(failed.reason, self._call.dispatch, round_number=self._number, remedies=remedies)
            )
            self._tried = replace(self._tried, remediable=False)
            return await self.decide(last.produced, last.report)
        if produced is None or better is None:
            return await self.decide(last.produced, last.report)
        self._tell(produced, better)
        return await self.decide(produced, better)

    async def _better(self, last: Round, produced: Produced, flow: str) -> dpe_pb2.Report | None:
        """Return the report of a remedied answer that may take the place of the draft; what may not is on record.

        Policy may look at more than the axes do, so an answer that it would keep back sooner than the draft is no better.
        """
        report = await self._judge(produced, flow)
        called = [axis for axis in Axis if axis.value in last.decision.called_for]
        draft, other = judged(last.report), judged(report)
        worse = named(worse_on(draft, other, called))
        if not worse and await self._severity(produced, report) > await self._severity(last.produced, last.report):
            worse = ["decision"]
        if not worse and is_improvement(draft, other, called):
            return report
        self._discard(last, worse, named(better_on(draft, other, called)))
        return None

    async def _severity(self, produced: Produced, report: dpe_pb2.Report) -> int:
        """Return how far policy would keep an answer back if it were the last one: delivered, held, refused or halted."""
        spent = replace(self._tried, remediable=False)
        action = (await self._decided(produced, report, spent)).action
        return _KEPT_BACK.index(action) if action in _KEPT_BACK else len(_KEPT_BACK)

    def _discard(self, last: Round, worse: Collection[str] = (), better: Collection[str] = ()) -> None:
        remedies = remediation.named(last.decision)
        for remedy in remedies:
            DISCARDED.labels(remedy).inc()
        log.info("remedy.discarded", window_id=self._window_id, number=self._number)
        self._run.noted.append(events.remedy_discarded(self._number, remedies=remedies, worse=worse, better=better))

    async def _remedied(self, last: Round, at: int, spent: int) -> tuple[Produced | None, str]:
        """Return what a remedy brings, and how the flow was remedied; no answer where a continuation adds nothing."""
        if last.decision.action == policy_pb2.ACTION_REDISPATCH:
            return await self._redispatched(last, at, spent)
        if last.decision.action == policy_pb2.ACTION_CONTINUE:
            return await self._continued(last, at, spent), last.report.flow_remediation
        return await self._stitched(last, at, spent), remediation.STITCHED

    async def _redispatched(self, last: Round, at: int, spent: int) -> tuple[Produced, str]:
        """Ask again, cooler, with another seed, by a stronger strategy and with every remedy at once (§19.2)."""
        self._tried = replace(self._tried, redispatches=self._tried.redispatches + 1)
        remedies, body = list(last.decision.remedies), self._context.body
        facts, fitting = self._context.envelope.facts, grounding.fitting(self._context.envelope, self._settings)
        rests_on = remediation.Grounds(bool(facts), tuple(fitting))
        self._instructions.learn(remedies, last.report, self._prior, rests_on)
        seed = remediation.seed_of(self._window_id, self._number, body.get("seed"))
        strategy = self._again(last.decision.redispatch_strategy)
        again = remediation.redispatch(body, self._instructions, seed=seed)
        flow = remediation.AUGMENTED if policy_pb2.REMEDY_FLOW_AUGMENTATION in self._instructions.by_remedy else ""
        try:
            return await self._produce(strategy, again), flow
        finally:
            before = last.produced.strategy
            told = [
                events.redispatched(
                    self._number, last.report, remedies=remediation.named(last.decision), strategy=strategy,
                    temperature=remediation.TEMPERATURE, seed=seed, tokens=self._tokens_since(spent),
                )
            ]  # fmt: skip
            if strategy != before:
                risk = word(common_pb2.RiskLevel, last.report.risk_level)
                told.append(events.strategy_upgraded(before, strategy, risk))
            if policy_pb2.REMEDY_FLOW_AUGMENTATION in remedies:
                told.append(events.flow_remedied(last.report, remediation.AUGMENTED))
            self._run.noted[at:at] = told

    async def _continued(self, last: Round, at: int, spent: int) -> Produced | None:
        """Ask for what was cut off, and join both answers; ``None`` where the second adds nothing."""
        self._tried = replace(self._tried, continuations=self._tried.continuations + 1)
        text = last.produced.answer.said
        body = remediation.continuation(self._context.body, text, last.report, self._context.envelope)
        more = await self._ask(last.produced.strategy, remediation.CONTINUE, body)
        joined = remediation.continued(last.produced.answer, more)
        told = events.continued(self._number, last.report, self._window_id, self._tokens_since(spent))
        self._run.noted.insert(at, told)
        if joined is None:
            self._discard(last)
            return None
        return replace(last.produced, answer=joined)

    async def _stitched(self, last: Round, at: int, spent: int) -> Produced:
        """Ask for a bridge from the window before, and put it in front of the answer."""
        self._tried = replace(self._tried, stitched=True)
        seed = remediation.seed_of(self._window_id, self._number, self._context.body.get("seed"))
        body = remediation.bridge_request(self._context.body, last.produced.answer.said, self._prior, seed=seed)
        bridge = remediation.bridge_of(await self._ask(last.produced.strategy, remediation.STITCH, body))
        told = events.stitched(
            self._number, _hash(bridge.encode()), self._prior[-1].window_id, self._tokens_since(spent)
        )
        self._run.noted[at:at] = [events.flow_remedied(last.report, remediation.STITCHED), told]
        return replace(last.produced, answer=remediation.stitched(last.produced.answer, bridge))

    def _tokens_since(self, spent: int) -> int:
        return int(completion.added(self._run.usages[spent:]).get("total_tokens", 0))

    @property
    def _reserve_s(self) -> float:
        """Time that the steps after a remedy need; none before the first answer, which nothing could stand in for."""
        if not self._number and not self._analysis_s:
            return 0.0
        return 2 * self._analysis_s + min(1.0, self._settings.request_timeout_s / 20)

    def _provider_time(self) -> float:
        """Return the seconds that a provider call may take, so that the steps after it have their time."""
        limit_s, reserve_s = self._settings.upstream_timeout_s, self._reserve_s
        left_s = self._run.deadline.within(limit_s + reserve_s) - reserve_s
        if left_s <= 0:
            raise Refused(Kind.TIMEOUT, "DEADLINE_EXCEEDED", "there is no time left for another dispatch")
        return left_s


def _hash(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
