"""The rounds of a governed call: dispatch, analyse, decide, and again while a remedy is left (SPEC-005 §18.5, §19).

What a round produces is not charged, sealed or released before the last round is decided (BUD-5). Policy says whether and
how there is another round; the bounds on their number are kept here too.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain.breaker import BreakerState
from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.remedies import MOST_CONTINUATIONS, MOST_REDISPATCHES
from interlock.runtime import failpoints
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.runtime.telemetry import span
from interlock.sidecar import requests
from interlock.sidecar.admission.admission import Admitted
from interlock.sidecar.call.call import Run
from interlock.sidecar.context import packing, synthesis
from interlock.sidecar.context.packing import Packed
from interlock.sidecar.context.synthesis import EarlierAnswers
from interlock.sidecar.context.transfer import SUMMARISE, Transfers
from interlock.sidecar.openai import completion
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider import remediation, strategies
from interlock.sidecar.provider.strategies import PUSH, REFLEXIVE, Pass, Produced
from interlock.sidecar.requests import DecidedAnswer, RemedyState
from interlock.sidecar.trail import events, response_headers, trace_events
from interlock.sidecar.trail.response_headers import word
from interlock.sidecar.verdict import checked_report

log = structlog.get_logger()

REDISPATCHES = Counter("interlock_redispatch", "Remedies begun, by remedy.", ["remedy"])

PASSES = 2
"""Provider calls that a re-dispatch makes at least: it is reflexive."""

CONTINUE, STITCH = "continue", "stitch"
_NOTHING_TO_CHARGE = frozenset({events.GENERATE, SUMMARISE})
"""Passes before which there is no answer yet: a caller that leaves ends them."""

_REMEDIES = frozenset({policy_pb2.ACTION_REDISPATCH, policy_pb2.ACTION_CONTINUE, policy_pb2.ACTION_STITCH})


@dataclass(frozen=True)
class Round:
    """One answer with its report and its decision."""

    produced: Produced
    report: dpe_pb2.Report
    decision: policy_pb2.Decision


class Rounds:
    """The rounds of one call."""

    def __init__(self, settings: Settings, peers: Peers, run: Run, admitted: Admitted) -> None:
        self._settings, self._peers, self._run, self._admitted = settings, peers, run, admitted
        self._call, self._window_id = run.call, admitted.opened.window_id
        self._prior: tuple[dpe_pb2.PriorWindow, ...] = ()
        self._context = Packed(run.call.body, run.call.envelope)
        self._instructions = remediation.Instructions()
        self._tried = RemedyState(remediable=bool(run.call.body), redispatches=0, continuations=0, stitched=False)
        self._number = self._iteration = 0
        self._analysis_s = 0.0

    async def dispatch(self) -> Produced:
        """Ask for the answer, after its context where the answer needs one.

        Where it needs none, what earlier windows said is read meanwhile, at no extra time.
        """
        strategy = self._initial()
        make, first = partial(self._ask, strategy), synthesis.comes_first(self._call, self._admitted.opened)
        reading = asyncio.ensure_future(synthesis.read(self._peers, self._run, self._admitted))
        try:
            if first:
                await self._prepare(make, await reading)
            produced = await strategies.produce(strategy, make, self._context.body)
            if not first:
                await self._prepare(make, await reading)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        return produced

    def _initial(self) -> str:
        if not self._call.body:
            return PUSH
        breaker, asked = self._admitted.breaker, self._admitted.strategy
        strategy = strategies.initial(breaker, self._admitted.safety_mode, asked)
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
        request = dpe_pb2.CheckSummaryRequest(source=source, summary=summary)
        with span("crp.check_summary"):
            return await self._peers.dpe.check_summary(request, self._run.deadline)

    async def _ask(self, strategy: str, step: str, body: Mapping[str, Any]) -> Completion:
        """Make one provider call and note it. A caller that leaves cuts it short, unless an answer is there to charge."""
        run, call = self._run, self._call
        dispatch = _dispatch_of(call.dispatch, strategy, body)
        timeout_s = self._provider_time()
        if strategy == REFLEXIVE and step in strategies.LOOP:
            self._iteration += 1
            run.noted.append(trace_events.loop_iteration(step, self._iteration, self._admitted.budget))
        run.noted.append(events.started(dispatch, step))
        run.dispatched = run.dispatched or step == events.GENERATE
        begun = time.perf_counter()
        with (
            run.timed(),
            span("crp.dispatch", provider=dispatch.provider, model=dispatch.model, strategy=strategy, phase=step),
        ):
            asking = asyncio.ensure_future(call.model(body, timeout_s))
            if step in _NOTHING_TO_CHARGE or self._number:
                run.asking.add(asking)
                if run.caller_left:
                    asking.cancel()
            try:
                answer = await asking
            except asyncio.CancelledError:
                asking.cancel()
                raise Refused(Kind.TIMEOUT, "CALLER_LEFT", "the caller left before the model answered") from None
            finally:
                run.asking.discard(asking)
        await failpoints.reached("sidecar.after_dispatch")
        took_s = time.perf_counter() - begun
        if answer.completion:
            run.usages.append(answer.usage)
        run.noted.append(events.completed(_hash(answer.body), answer.tokens_used, round(took_s * 1000)))
        return answer

    async def analyse(self, produced: Produced, flow_remediation: str = "") -> dpe_pb2.Report:
        """Analyse every output of an answer."""
        reply, begun = self._call.reply, time.perf_counter()
        request = requests.to_analyse(
            self._admitted, self._context, produced.answer.outputs, prior=self._prior,
            domain=self._settings.ai_domain, flow_remediation=flow_remediation,
            grounding_mode=self._call.asked.grounding_mode or "",
        )  # fmt: skip
        with span("crp.analyse"):
            report = await self._peers.dpe.analyze(request, self._run.deadline)
        self._analysis_s = max(self._analysis_s, time.perf_counter() - begun)
        report = requests.with_links(checked_report(report, produced.answer), self._context)
        reply.set(response_headers.of_strategy(strategies.shape_of(self._call) or produced.strategy, produced.revision))
        reply.set({**response_headers.of_report(report), **_facts_used(report, self._context)})
        self._run.noted.extend(events.of_report(report, no_store=self._call.asked.no_store))
        return report

    async def decide(self, produced: Produced, report: dpe_pb2.Report) -> Round:
        """Ask policy what happens to an analysed answer."""
        tried = self._possible(produced.answer)
        request = requests.to_decide(self._admitted, self._call.asked, report, tried=tried, strategy=produced.strategy)
        with span("crp.decide"):
            decision = await self._peers.policy.decide(request, self._run.deadline)
        self._call.reply.set(response_headers.of_decision(decision))
        return Round(produced, report, decision)

    def has_remedy(self, last: Round) -> bool:
        """Tell whether policy wants a remedy and one is left. Without one, the answer is not released."""
        action = last.decision.action
        if action not in _REMEDIES or not self._tried.remediable:
            return False
        return {
            policy_pb2.ACTION_REDISPATCH: self._tried.redispatches < MOST_REDISPATCHES,
            policy_pb2.ACTION_CONTINUE: self._tried.continuations < MOST_CONTINUATIONS,
            policy_pb2.ACTION_STITCH: not self._tried.stitched,
        }[action]

    def decided(self, last: Round) -> DecidedAnswer:
        """Return the last round's answer, with the usage of every provider call that led to it."""
        answer, usages = last.produced.answer, [*self._call.spent, *self._run.usages]
        if len(usages) > 1:
            answer = completion.assembled(answer.completion, answer.choices, completion.added(usages))
        return DecidedAnswer(answer, last.produced.strategy, last.report, last.decision, self._context)

    def _possible(self, answer: Completion) -> RemedyState:
        """Return what was tried; what this answer, its caller or the time does not allow counts as tried."""
        run, tried = self._run, self._tried
        left_s = run.deadline.left_s - self._reserve_s
        if not (tried.remediable and self._settings.remediation == "full") or run.caller_left or left_s < run.slowest_s:
            self._tried = replace(tried, remediable=False)
            return self._tried
        joinable = remediation.joinable(answer, self._context.body) is not None
        return RemedyState(
            remediable=True,
            redispatches=tried.redispatches if left_s >= PASSES * run.slowest_s else MOST_REDISPATCHES,
            continuations=tried.continuations if joinable else MOST_CONTINUATIONS,
            stitched=tried.stitched or not joinable or not self._prior,
        )

    async def remedy(self, last: Round) -> Round:
        """Try the remedy that was decided. One that fails leaves the answer before it, which is then decided as the last."""
        self._number += 1
        action, at, spent = last.decision.action, len(self._run.noted), len(self._run.usages)
        remedies = _named(last.decision)
        for remedy in remedies:
            REDISPATCHES.labels(remedy).inc()
        try:
            if action == policy_pb2.ACTION_REDISPATCH:
                produced, flow = await self._redispatched(last, at, spent)
            elif action == policy_pb2.ACTION_CONTINUE:
                produced, flow = await self._continued(last, at, spent), last.report.flow_remediation
            else:
                produced, flow = await self._stitched(last, at, spent), remediation.STITCHED
        except Refused as failed:
            log.info("remedy.failed", window_id=self._window_id, reason=failed.reason, number=self._number)
            self._run.noted.append(
                events.dispatch_failed(failed.reason, self._call.dispatch, round_number=self._number, remedies=remedies)
            )
            self._tried = replace(self._tried, remediable=False)
            return await self.decide(last.produced, last.report)
        return await self.decide(produced, await self.analyse(produced, flow))

    async def _redispatched(self, last: Round, at: int, spent: int) -> tuple[Produced, str]:
        """Ask again, cooler, with another seed, by a stronger strategy and with every remedy at once (§19.2)."""
        self._tried = replace(self._tried, redispatches=self._tried.redispatches + 1)
        remedies, body = list(last.decision.remedies), self._context.body
        self._instructions.learn(remedies, last.report, self._prior)
        seed = remediation.seed_of(self._window_id, self._number, body.get("seed"))
        strategy = last.decision.redispatch_strategy
        strategy = strategy if strategy in {PUSH, REFLEXIVE} else REFLEXIVE
        again = remediation.redispatch(body, self._instructions, seed=seed)
        flow = remediation.AUGMENTED if policy_pb2.REMEDY_FLOW_AUGMENTATION in self._instructions.by_remedy else ""
        try:
            return await strategies.produce(strategy, partial(self._ask, strategy), again), flow
        finally:
            before = last.produced.strategy
            told = [
                events.redispatched(
                    self._number, last.report, remedies=_named(last.decision), strategy=strategy,
                    temperature=remediation.TEMPERATURE, seed=seed, tokens=self._tokens_since(spent),
                )
            ]  # fmt: skip
            if strategy != before:
                risk = word(common_pb2.RiskLevel, last.report.risk_level)
                told.append(events.strategy_upgraded(before, strategy, risk))
            if policy_pb2.REMEDY_FLOW_AUGMENTATION in remedies:
                told.append(events.flow_remedied(last.report, remediation.AUGMENTED))
            self._run.noted[at:at] = told

    async def _continued(self, last: Round, at: int, spent: int) -> Produced:
        """Ask for what was left open, and join both answers."""
        self._tried = replace(self._tried, continuations=self._tried.continuations + 1)
        text = last.produced.answer.said
        body = remediation.continuation(self._context.body, text, last.report, self._context.envelope)
        more = await self._ask(last.produced.strategy, CONTINUE, body)
        joined = remediation.continued(last.produced.answer, more)
        told = events.continued(self._number, last.report, self._window_id, self._tokens_since(spent))
        self._run.noted.insert(at, told)
        return replace(last.produced, answer=joined)

    async def _stitched(self, last: Round, at: int, spent: int) -> Produced:
        """Ask for a bridge from the window before, and put it in front of the answer."""
        self._tried = replace(self._tried, stitched=True)
        seed = remediation.seed_of(self._window_id, self._number, self._context.body.get("seed"))
        body = remediation.bridge_request(self._context.body, last.produced.answer.said, self._prior, seed=seed)
        bridge = remediation.bridge_of(await self._ask(last.produced.strategy, STITCH, body))
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


def _named(decision: policy_pb2.Decision) -> list[str]:
    """Return the remedies of a decision by name."""
    if decision.action == policy_pb2.ACTION_REDISPATCH:
        return [remediation.NAMES[remedy] for remedy in decision.remedies if remedy in remediation.NAMES]
    return [CONTINUE if decision.action == policy_pb2.ACTION_CONTINUE else STITCH]


def _facts_used(report: dpe_pb2.Report, context: Packed) -> dict[str, str | None]:
    """Return the header that tells how many of the candidates are in the envelope, where some are not (SPEC-002 §4.4)."""
    if not context.left_out:
        return {}
    return {"CRP-Context-Facts-Used": f"{report.facts_total}/{report.facts_total + context.left_out}"}


def _dispatch_of(asked: events.Dispatch, strategy: str, body: Mapping[str, Any]) -> events.Dispatch:
    """Return how this one provider call was made."""
    if not body:
        return asked
    return replace(
        asked,
        strategy=strategy,
        temperature=body.get("temperature"),
        token_budget=body.get("max_completion_tokens") or body.get("max_tokens"),
        seed=body.get("seed"),
        choices=int(body.get("n") or 1),
    )


def _hash(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
