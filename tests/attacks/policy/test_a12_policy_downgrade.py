"""A-12: no layer, spelling or repetition makes a policy looser than it was (I7)."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.policy.directives import canonical
from interlock.domain.policy.policy_order import merge, relaxations
from interlock.domain.policy.policy_text import parse
from tests.support.policy.policies import joinable
from tests.support.sidecar.sidecar import running_sidecar, token_of
from tests.support.statuses import reason_of_status

pytest_plugins = ("tests.support.sidecar.fronts",)

PARENT = "halt-on CRITICAL; require-grounding 0.80; block-pii"
POLICY = "crp-safety-policy"
LOOSER = {
    "a child's own policy": ([(POLICY, "halt-on CRITICAL; require-grounding 0.70; block-pii")], 403),
    "a directive left out": ([(POLICY, "halt-on CRITICAL; require-grounding 0.90")], 403),
    "a profile": ([(POLICY, "profile=developer")], 403),
    "a mode": ([("crp-safety-mode", "permissive")], 403),
    "an oversight mode": ([("crp-safety-oversight-mode", "log-only")], 403),
}
MALFORMED = {
    "an unknown directive": "halt-on CRITICAL; halt-never",
    "a homoglyph": "halt-оn CRITICAL".encode().decode("latin-1"),
    "a directive twice": "halt-on CRITICAL; halt-on MEDIUM",
    "lines joined by a comma": "halt-on CRITICAL, block-pii",
    "two spaces": "halt-on  CRITICAL",
    "a tab": "halt-on\tCRITICAL",
    "a percent sign": "halt-on%20CRITICAL",
    "nothing but a separator": ";",
    "a trailing semicolon": "halt-on CRITICAL;",
    "a value without a name": "CRITICAL",
}


@pytest.fixture
async def child(sidecar):
    """Returns headers of a new child below a session under ``PARENT`` with an oversight demand and a strict mode."""

    async def headers() -> dict[str, str]:
        asked = {POLICY: f"{PARENT}; oversight human-review", "crp-safety-mode": "strict"}
        root = await sidecar.chat(headers=asked)
        granted = await sidecar.client.post(
            "/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(root)}
        )
        sent = {name.lower(): value for name, value in granted.json()["headers"].items()}
        return {name: value for name, value in sent.items() if name not in {POLICY, "crp-safety-mode"}}

    return headers


@pytest.mark.req("POL-6")
@pytest.mark.parametrize("layer", LOOSER)
async def test_a12_a_child_is_looser_by_no_layer(sidecar, provider, child, layer):
    """Each layer that could loosen what the parent has is refused, and the model is not called."""
    sent, status = LOOSER[layer]
    headers = await child()
    asked = len(provider.received)
    answer = await sidecar.chat(headers={**headers, **dict(sent)})

    assert answer.status_code == status, answer.text
    assert "violation" in answer.json()["error"]["code"] or "relax" in answer.json()["error"]["code"], answer.text
    assert len(provider.received) == asked


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("POL-1")
@pytest.mark.parametrize("spelling", MALFORMED)
async def test_a12_a_policy_that_cannot_be_read_is_refused_and_never_ignored(shared_sidecar, provider, spelling):
    """What an older or laxer parser would skip over is 400 here, as the enforced policy and as the reported one."""
    answers = [
        await shared_sidecar.client.post(
            "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "?"}]},
            headers=[(name, MALFORMED[spelling].encode("latin-1"))],
        )
        for name in (POLICY, f"{POLICY}-report-only")
    ]  # fmt: skip

    assert {answer.status_code for answer in answers} == {400}, [answer.text for answer in answers]
    assert provider.received == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("POL-2", "POL-8")
@pytest.mark.parametrize(
    ("first", "then", "applied"),
    [
        # Every line counts, in whatever order.
        ([(POLICY, "halt-on HIGH"), (POLICY, "halt-on CRITICAL")], [], "halt-on HIGH"),
        ([(POLICY, "halt-on CRITICAL"), (POLICY, "HALT-ON high")], [], "halt-on HIGH"),
        # The reported one enforces nothing, and loosens nothing.
        ([(POLICY, "halt-on HIGH"), (f"{POLICY}-report-only", "halt-on CRITICAL")], [], "halt-on HIGH"),
        # A later window asks for less, or for nothing: it has what the session has.
        ([(POLICY, "halt-on HIGH; block-pii")], [(POLICY, "halt-on CRITICAL")], "halt-on HIGH; block-pii"),
        ([(POLICY, "halt-on HIGH; block-pii")], [], "halt-on HIGH; block-pii"),
        ([(POLICY, "profile=medical; require-grounding 0.10")], [], "require-grounding 0.90"),
    ],
)
async def test_a12_the_tightest_of_all_that_was_said_applies(shared_sidecar, provider, first, then, applied):
    """CRP-Safety-Policy-Applied names it, for the first window and for the next."""
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    one = await shared_sidecar.client.post("/v1/chat/completions", json=body, headers=first)
    token = [("crp-session-token", token_of(one))]
    two = await shared_sidecar.client.post("/v1/chat/completions", json=body, headers=[*token, *then])

    assert applied in one.headers["crp-safety-policy-applied"]
    assert two.status_code == 403 or applied in two.headers["crp-safety-policy-applied"]


@pytest.mark.req("POL-4", "POL-5", "POL-6")
def test_a12_over_the_wire_a_child_is_at_least_as_strict_as_its_parent(tmp_path):
    """Random parents and children over gRPC: refused exactly where the child relaxes, else at least as strict in everything."""
    cases: list[tuple] = []

    @settings(max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(joinable(), joinable(), st.booleans())
    def drawn(parent, child, tighten) -> None:
        cases.append((parent, merge(parent, child) if tighten else child))

    drawn()

    async def over_the_wire() -> list[bool]:
        async with running_sidecar(tmp_path) as sidecar:
            return [await _kept(sidecar, *case) for case in cases if canonical(case[0])]

    refusals = asyncio.run(over_the_wire())
    assert 10 < sum(refusals) < len(refusals) - 10  # both kinds were drawn


async def _kept(sidecar, parent, child) -> bool:
    """Begin both sessions; return whether the child was refused."""
    text = canonical(child)
    started = await sidecar.stub.StartSession(
        sidecar_pb2.StartSessionRequest(context=sidecar_pb2.CallContext(safety_policy=[canonical(parent)]))
    )
    context = sidecar_pb2.CallContext(session_token=started.session_token)
    grant = (await sidecar.stub.Delegate(sidecar_pb2.DelegateRequest(context=context))).grant
    asked = sidecar_pb2.StartSessionRequest(
        context=sidecar_pb2.CallContext(safety_policy=[text] if text else []), parent=sidecar_pb2.Parent(grant=grant)
    )
    try:
        below = await sidecar.stub.StartSession(asked)
    except grpc.aio.AioRpcError as error:
        assert relaxations(parent, child), (parent, child, error)
        assert reason_of_status(error) == "SAFETY_POLICY_INHERITANCE_VIOLATION"
        return True
    assert not text or not relaxations(parent, child)
    assert relaxations(parent, parse(below.session.policy_text)) == []
    return False
