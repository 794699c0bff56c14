"""A-14: the nonce and the policy of another session, or of an earlier and looser time."""

from __future__ import annotations

import pytest

from tests.support.sidecar.sidecar import reason_of, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("TOK-3", "POL-6")

LOOSE, TIGHT = "halt-on CRITICAL", "halt-on HIGH; require-grounding 0.75"


async def test_a14_a_nonce_of_one_session_is_refused_by_another(sidecar, provider):
    """The nonce that came with a loose policy does not carry it into a session with a tight one."""
    loose = await sidecar.chat(headers={"crp-safety-policy": LOOSE})
    tight = await sidecar.chat(headers={"crp-safety-policy": TIGHT})
    replay = {"crp-safety-policy": LOOSE, "crp-safety-nonce": loose.headers["crp-safety-nonce"]}
    answer = await sidecar.chat(token=token_of(tight), headers=replay)

    assert (answer.status_code, reason_of(answer)) == (400, "NONCE_MISMATCH")
    assert len(provider.received) == 2


async def test_a14_the_right_nonce_with_the_older_policy_relaxes_nothing(sidecar, provider):
    """A session that tightened its policy refuses the one it began with, whatever nonce comes along."""
    first = await sidecar.chat(headers={"crp-safety-policy": LOOSE})
    second = await sidecar.chat(token=token_of(first), headers={"crp-safety-policy": TIGHT})
    nonce = {"crp-safety-nonce": second.headers["crp-safety-nonce"]}
    back = await sidecar.chat(token=token_of(second), headers={"crp-safety-policy": LOOSE, **nonce})
    silent = await sidecar.chat(token=token_of(second), headers=nonce)

    assert back.status_code == 403
    assert silent.status_code == 200
    assert silent.headers["crp-safety-policy-applied"] == second.headers["crp-safety-policy-applied"]


async def test_a14_a_nonce_without_its_session_means_nothing(sidecar, provider):
    """A nonce with no token beside it is refused, as is one that was made up."""
    first = await sidecar.chat(headers={"crp-safety-policy": LOOSE})
    alone = await sidecar.chat(headers={"crp-safety-nonce": first.headers["crp-safety-nonce"]})
    made_up = await sidecar.chat(token=token_of(first), headers={"crp-safety-nonce": "base64:" + "A" * 22 + "=="})

    assert [alone.status_code, made_up.status_code] == [400, 400]
    assert len(provider.received) == 1


async def test_a14_the_token_of_before_the_tightening_is_spent(sidecar, provider):
    """The token that still names the looser policy's hash is a replay."""
    first = await sidecar.chat(headers={"crp-safety-policy": LOOSE})
    await sidecar.chat(token=token_of(first), headers={"crp-safety-policy": TIGHT})
    replay = await sidecar.chat(token=token_of(first))

    assert (replay.status_code, reason_of(replay)) == (409, "TOKEN_REPLAYED")
    assert provider.received[-1].path.endswith("/chat/completions")
