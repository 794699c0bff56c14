"""The state of a held response under any order of decisions, releases, time and erasure (I12; A-30).

A model of six lines stands beside the real service over a real SQLite log: whatever is tried, at most one decision stands, at
most one claim is served, and nothing is served that was not approved, of another hash, after its time or after an erasure.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.chain.chain import content_hash
from interlock.domain.held import REPEAT_S, Held, packed
from tests.support.audit.audit import START, Service, hash_of, session_id, window, window_id
from tests.support.sidecar.oversight import decision, token_for
from tests.support.sidecar.sidecar import a_report

HOLD_S = 600
BODY = b'{"choices":[]}'
POLICY = hash_of(5)
CLAIMS = [hash_of(70), hash_of(71)]


def response_hash() -> str:
    return content_hash(BODY)


class Clock:
    def __init__(self) -> None:
        self.now_us = START

    def __call__(self) -> int:
        self.now_us += 1000
        return self.now_us


class Decisions(RuleBasedStateMachine):
    """One held window; the model holds what may still happen."""

    @initialize()
    def held(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        log = SqliteLog(Path(self.folder.name) / "audit.db", clock=self.clock)
        log.commit([])
        self.service = self.runner.run(self._opened(log))
        self.decided: bool | None = None
        self.approval, self.winner, self.served_at = "", "", 0
        self.begun_us = self.clock.now_us
        self.numbers = 0

    async def _opened(self, log: SqliteLog) -> Service:
        service = Service(log, clock=self.clock)
        held = packed(Held("chat", False, {}, BODY, b"", "", {}))
        request = window(
            1, status="HELD", content="said", held=held, hold_s=HOLD_S, policy_hash=POLICY,
            response_hash=response_hash(), report=a_report("HIGH"),
        )  # fmt: skip
        answer = await service.stub.Append(request)
        assert not answer.HasField("refusal"), answer.refusal
        return service

    @property
    def over(self) -> bool:
        return self.clock.now_us > self.begun_us + HOLD_S * 1_000_000

    def token(self, *, approve: bool, **scope: str) -> str:
        self.numbers += 1
        item = {
            "session_id": session_id(), "window_id": window_id(1), "response_hash": response_hash(),
            "policy_hash": POLICY,
        }  # fmt: skip
        issued = self.clock.now_us // 1_000_000
        action = "release" if approve else "reject"
        return token_for(item, action=action, number=self.numbers, issued_at=issued, life_s=HOLD_S * 2, **scope)

    @rule(first=st.booleans(), second=st.booleans())
    def two_decide_at_once(self, first: bool, second: bool) -> None:
        """Of two concurrent decisions at most one is taken, and none after the first ever."""
        tokens = [self.token(approve=first), self.token(approve=second)]

        async def both():
            return await asyncio.gather(*(self.service.stub.DecideHeld(decision(token)) for token in tokens))

        over = self.over
        answers = self.runner.run(both())
        taken = [n for n, answer in enumerate(answers) if not answer.HasField("refusal")]
        reasons = {answer.refusal.reason for answer in answers if answer.HasField("refusal")}
        if self.decided is None and not over:
            assert len(taken) == 1
            assert reasons == {"HELD_ALREADY_DECIDED"}
            self.decided = [first, second][taken[0]]
            self.approval = answers[taken[0]].item.approval_id
        else:
            assert taken == []
            assert reasons <= {"HELD_ALREADY_DECIDED", "HOLD_EXPIRED"}

    @rule(name=st.sampled_from(["session", "window", "response", "policy"]), approve=st.booleans())
    def a_decision_about_something_else(self, name: str, approve: bool) -> None:
        """An approval that names another session, window, response or policy moves nothing."""
        other = {"session": session_id(9), "window": window_id(9)}.get(name, hash_of(99))
        request = decision(self.token(approve=approve, **{name: other}))
        request.window_id, request.response_hash = window_id(1), response_hash()
        answer = self.runner.run(self._decide(request))
        assert answer.refusal.reason in {"APPROVAL_MISMATCH", "HELD_ALREADY_DECIDED", "HOLD_EXPIRED"}

    async def _decide(self, request):
        return await self.service.stub.DecideHeld(request)

    @rule(claim=st.sampled_from(CLAIMS), right=st.booleans(), same=st.booleans())
    def somebody_claims(self, claim: str, right: bool, same: bool) -> None:
        """Only the approval that stands is served, to one claim, again to that one for a minute, and in time."""
        request = audit_pb2.ReleaseHeldRequest(
            session_id=session_id(), window_id=window_id(1),
            approval_id=self.approval if right else f"crp_appr_{10**9:032x}", reviewer_id="reviewer@company.com",
            response_hash=response_hash() if same else hash_of(98), claim=claim,
        )  # fmt: skip

        async def asking():
            return await self.service.stub.ReleaseHeld(request)

        before, over = self.clock.now_us, self.over
        answer = self.runner.run(asking())
        fresh = self.winner == "" and not over
        again = self.winner == claim and before - self.served_at < REPEAT_S * 1_000_000
        if self.decided and right and same and (fresh or again):
            assert answer.held, answer.refusal
            if fresh and self.winner == "":
                self.winner, self.served_at = claim, before
        else:
            assert answer.held == b""
            assert answer.refusal.reason

    @rule(seconds=st.sampled_from([1, 61, HOLD_S + 1]))
    def time_passes(self, seconds: int) -> None:
        """And the task that cleans up runs, or not yet."""
        self.clock.now_us += seconds * 1_000_000

    @rule(seconds=st.sampled_from([30, 61]), other=st.booleans())
    def it_is_approved_claimed_and_claimed_again(self, seconds: int, other: bool) -> None:
        """The way that most responses go, and the way that a thief would."""
        self.two_decide_at_once(first=True, second=True)
        self.somebody_claims(CLAIMS[0], right=True, same=False)
        self.somebody_claims(CLAIMS[0], right=False, same=True)
        self.somebody_claims(CLAIMS[0], right=True, same=True)
        self.clock.now_us += seconds * 1_000_000
        self.somebody_claims(CLAIMS[1] if other else CLAIMS[0], right=True, same=True)

    @rule(approve=st.booleans(), cleaned=st.booleans())
    def nobody_was_in_time(self, approve: bool, cleaned: bool) -> None:
        """Too late to decide, and too late to claim what was decided."""
        self.clock.now_us += (HOLD_S + 1) * 1_000_000
        if cleaned:
            self.cleaned_up()
        self.two_decide_at_once(first=approve, second=approve)
        self.somebody_claims(CLAIMS[0], right=True, same=True)

    @rule()
    def cleaned_up(self) -> None:
        """Whenever it runs, it changes nothing that is allowed."""
        self.runner.run(self._end())

    async def _end(self) -> None:
        await self.service.servicer.holds.end_overdue()

    @invariant()
    def the_chain_says_what_happened(self) -> None:
        """At most one decision and one release are in the chain, and the chain verifies."""
        if not hasattr(self, "service"):
            return
        kinds = [event.event_type for event in self.service.log.chain(session_id()).events]
        found = self.runner.run(self._verified())
        assert sum(kind in {"OVERSIGHT_APPROVED", "OVERSIGHT_REJECTED"} for kind in kinds) == (self.decided is not None)
        assert kinds.count("RESPONSE_RELEASED") == (self.winner != "")
        assert kinds.count("OVERSIGHT_EXPIRED") <= (0 if self.winner or self.decided is False else 1)
        assert not found.faults
        assert found.integrity == common_pb2.CHAIN_INTEGRITY_UNVERIFIED

    async def _verified(self):
        return await self.service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id()))

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.runner.run(self.service.servicer.close())
            self.runner.close()
            self.folder.cleanup()


Decisions.TestCase.settings = settings(max_examples=20, stateful_step_count=6, deadline=None)
TestDecisions = Decisions.TestCase
