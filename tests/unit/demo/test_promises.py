"""The demonstration fails when it does not keep a promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.demo.agent import DemoWindow
from interlock.demo.promises import broken
from interlock.demo.recording import load

TURN = load().turns[0]
REMEDIED = next(turn for turn in load().turns if turn.again != turn.answer)


def window(
    number: int, budget: int, *, answer: str | None = TURN.answer, chain: str = "VALID", turn=TURN,
    stage=dpe_pb2.STAGE_STATUS_RAN, judged: bool = True,
) -> DemoWindow:  # fmt: skip
    halted = answer is None
    report = dpe_pb2.Report(
        stages=[dpe_pb2.Stage(number="1", status=stage)], models=[dpe_pb2.Model(slot="nli", name="m")] if judged else []
    )
    return DemoWindow(
        number=number, turn=turn, status=451 if halted else 200, answer=answer,
        headers={"crp-provenance-chain-integrity": chain}, body={"crp_halt_reason": "X"} if halted else None,
        report=report, session=session_pb2.Session(safety_budget_micros=budget),
    )  # fmt: skip


def kept() -> list[DemoWindow]:
    first = window(1, 1_000_000, chain="UNVERIFIED")
    second = window(2, 900_000, turn=REMEDIED, answer=REMEDIED.again)
    return [first, second, *(window(n, 1_000_000 - n * 50_000) for n in range(3, 5)), window(5, 100_000, answer=None)]


def said(windows: list[DemoWindow], *, calls: int = 5, crp: frozenset[str] = frozenset()) -> list[str]:
    return list(broken(windows, provider_calls=calls, recorded_calls=5, crp_headers=set(crp)))


def test_a_run_that_keeps_every_promise_has_nothing_to_report():
    """Five windows, the last one halted, the budget falling, the chain valid."""
    assert said(kept()) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda w: w[:-1], "the last window was not halted"),
        (lambda w: [*w[:4], replace(w[4], body={})], "names no reason"),
        (lambda w: [*w[:3], replace(w[3], answer="other"), w[4]], "not the recorded one"),
        (lambda w: [w[0], replace(w[1], session=session_pb2.Session()), *w[2:]], "the budget rose in window 3"),
        (lambda w: [*w[:2], window(3, 850_000, chain="BROKEN"), *w[3:]], "the chain is BROKEN"),
        (lambda w: [*w[:2], window(3, 850_000, chain="UNVERIFIED"), *w[3:]], "the chain is UNVERIFIED"),
        (lambda w: [*w[:2], window(3, 850_000, chain=""), *w[3:]], "the chain is not reported"),
        (lambda w: w[1:], "at least 5 were promised"),
        (lambda w: [w[0], window(2, 900_000), *w[2:]], "no window was remedied"),
        (lambda w: [w[0], w[1], window(3, 850_000, stage=2), *w[3:]], "window 3: stage 1 did not run"),
        (lambda w: [w[0], w[1], window(3, 850_000, judged=False), *w[3:]], "window 3: the report names no model"),
    ],
)
def test_each_broken_promise_is_named(change, sentence):
    """Whatever is not as shown has its sentence."""
    assert any(sentence in one for one in said(change(kept())))


def test_a_call_too_many_and_a_leaked_header_are_named():
    """The provider's own count decides, not the mesh's."""
    sentences = said(kept(), calls=6, crp=frozenset({"crp-session-token"}))

    assert sentences == [
        "the provider was called 6 times, and 5 calls are on record",
        "CRP headers reached the provider: crp-session-token",
    ]
