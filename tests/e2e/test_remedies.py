"""Remedies through the whole mesh: real models, real openai client, one process and separate services (DPE-16, BUD-5)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from interlock.sidecar.provider import prompts
from tests.support.servers.processes import run_here
from tests.support.servers.provider import RunningProvider, completion, message
from tests.support.sidecar.mesh import Front, start_front
from tests.support.sidecar.remedies import EVERY_REMEDY, Script, cut_off, fields_of
from tests.support.sidecar.sidecar import token_of

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]

CONTEXT = (
    "The Eiffel Tower is 330 metres tall. The Eiffel Tower stands in Paris. The Eiffel Tower was completed in 1889. "
    "Gustave Eiffel's company built the Eiffel Tower. The Eiffel Tower was repainted in 2022. The Eiffel Tower has three "
    "levels for visitors."
)
FIRST = "The Eiffel Tower stands in Paris. The Eiffel Tower is 330 metres tall and was completed in 1889."
ONWARD = (
    "Furthermore, the Eiffel Tower has three levels for visitors. In addition, the Eiffel Tower in Paris was repainted in "
    "2022."
)
WRONG = "The Eiffel Tower is 990 metres tall. It was moved to Berlin by Otto Krause in 1953."
ASKED = "Tell me about the Eiffel Tower."


@pytest.fixture(scope="module")
def running():
    with RunningProvider(Script()) as one:
        yield one


@pytest.fixture(scope="module", params=["local", pytest.param("remote", marks=pytest.mark.long)])
def front(request, tmp_path_factory, running) -> Iterator[Front]:
    # Long deadlines: on a slow machine a remedy is not begun that the time left does not hold.
    settings = {"upstream_base_url": running.base_url, "request_timeout_s": 150, "dpe_timeout_s": 60, **EVERY_REMEDY}
    started = start_front(request.param, tmp_path_factory.mktemp(request.param), settings)
    with started.processes:
        yield started


@pytest.fixture
def script(running) -> Script:
    running.provider.reset()
    running.provider.plays()
    return running.provider


def ask(front: Front, token: str | None = None, question: str = ASKED, context: str = CONTEXT, **more: Any):
    """One call by the openai client, and its headers."""
    headers = {**more.pop("headers", {}), **({"CRP-Session-Token": token} if token else {})}
    with openai.OpenAI(base_url=f"{front.http}/v1", api_key="k", max_retries=0, timeout=180) as client:
        return client.chat.completions.with_raw_response.create(
            model="m", extra_headers=headers,
            messages=[{"role": "system", "content": context}, {"role": "user", "content": question}], **more,
        )  # fmt: skip


def onward(first: Any) -> dict[str, str]:
    """The header of a call that continues the answer of *first*."""
    return {"CRP-Context-Continuation-Id": first.headers["crp-context-continuation-id"]}


def said(raw: Any) -> str:
    return raw.parse().choices[0].message.content


def audit(front: Front, command: str, session_id: str) -> str:
    """What ``interlock audit`` says about a session, on the state of the mesh."""
    processes = front.processes.all
    return run_here("audit", command, session_id, env=(processes.get("audit") or processes["mesh"]).env).stdout


def trail(front: Front, raw: Any) -> list[tuple[str, dict[str, Any]]]:
    """Type and fields of the events of the answer's session."""
    lines = audit(front, "export", raw.headers["crp-context-session-id"]).splitlines()
    return [(event["event_type"], event["data"]) for event in map(json.loads, lines)]


@pytest.mark.req("DPE-16", "DPE-7", "BUD-5", "AUD-1")
def test_a_repetition_is_found_and_mended(front, script):
    """The same answer once more is SEVERE: asked again as §9.3 prints it, delivered, charged once, told in the chain."""
    script.plays(generate=[FIRST])
    first = ask(front)
    script.received.clear()
    script.plays(generate=[FIRST, ONWARD])
    second = ask(front, token_of(first), headers=onward(first), temperature=0.9, seed=11)
    events = trail(front, second)
    again = fields_of(events, "RE_DISPATCH")
    head, tail = prompts.ANTI_REPETITION.split("{summary}")

    assert said(second) == ONWARD
    assert (script.steps[:3], script.body("generate", 1)["temperature"]) == (["generate", "generate", "verify"], 0.2)
    assert script.body("generate", 1)["seed"] == again[0]["seed"] != 11
    assert head in script.system("generate", 1)
    assert tail in script.system("generate", 1)
    assert prompts.quoted(FIRST) in script.system("generate", 1)
    assert "repetition" in again[0]["reason"]
    assert fields_of(events, "REPETITION_DETECTED")[0]["level"] == "SEVERE"
    assert "SEVERE" not in second.headers["crp-quality-repetition"]
    assert second.headers["crp-context-strategy"] == "reflexive"
    assert len(fields_of(events, "WINDOW_SEALED")) == 2
    assert audit(front, "verify", second.headers["crp-context-session-id"]).startswith("VALID")
    assert second.parse().usage.total_tokens == 15 * len(script.received)


@pytest.mark.req("DPE-16", "BUD-5")
def test_an_invented_answer_is_upgraded_and_costs_nothing(front, script):
    """Its risk calls for the upgrade; the answer that the context supports is the one that is charged: nothing."""
    script.plays(generate=[WRONG, FIRST])
    raw = ask(front, headers={"CRP-Safety-Policy": "halt-on HIGH; upgrade-on-risk reflexive"})

    assert said(raw) == FIRST
    assert "Krause" not in raw.text
    assert raw.headers["crp-agent-safety-budget"] == "1.00"
    assert raw.headers["crp-safety-hallucination-risk"] == "LOW"
    assert "Answer only using the provided context." in script.system("generate", 1)


@pytest.mark.req("DPE-16", "DPE-6")
def test_a_number_that_contradicts_an_earlier_window_is_corrected(front, script):
    """990 after 330 is a CRITICAL contradiction: both are told, and the corrected answer is delivered."""
    script.plays(generate=[FIRST])
    first = ask(front)
    script.plays(generate=["The Eiffel Tower is 990 metres tall and was completed in 1889.", ONWARD])
    second = ask(front, token_of(first))
    reasons = [fields["reason"] for fields in fields_of(trail(front, second), "RE_DISPATCH")]

    assert "contradiction" in reasons[0]
    assert "contradicted what was already said" in script.system("generate", 2)
    assert "330" in script.system("generate", 2).split("Earlier:")[1]
    assert said(second) == ONWARD
    assert second.headers["crp-safety-contradictions"] == "0"


@pytest.mark.req("DPE-16", "DPE-8")
def test_what_was_cut_off_is_continued(front, script):
    """One of two needs is met when a limit ends the answer: the rest is asked for, and the client gets one answer."""
    question = "How tall is the Eiffel Tower, and when was it repainted?"
    script.plays(
        generate=[cut_off("The Eiffel Tower is 330 metres tall.")],
        **{"continue": ["The Eiffel Tower was repainted in 2022."]},
    )
    raw = ask(front, question=question)
    events = trail(front, raw)

    assert said(raw) == "The Eiffel Tower is 330 metres tall.\n\nThe Eiffel Tower was repainted in 2022."
    assert script.steps == ["generate", "continue"]
    assert "Now address:" in script.system("continue")
    assert len(fields_of(events, "COMPLETENESS_CONTINUATION")) == 1
    assert len(fields_of(events, "WINDOW_SEALED")) == 1
    assert raw.headers["crp-context-window"] == "1/200"
    assert raw.headers["crp-quality-completeness"].startswith("COMPLETE")


@pytest.mark.req("DPE-16", "DPE-9")
def test_a_jump_is_augmented_twice_and_then_bridged(front, script):
    """An answer that goes on from nothing is asked for twice more, then gets its bridge, and the header says so."""
    script.plays(generate=[FIRST])
    first = ask(front)
    script.received.clear()
    away = "Butter melts slowly in warm pans. Bakers fold flour gently."
    script.plays(generate=[away], stitch=["Butter melts slowly in warm pans, as the next passage tells."])
    second = ask(
        front, token_of(first), question="Butter melts how? Bakers fold flour how?", context=f"{CONTEXT} {away}",
        headers=onward(first),
    )  # fmt: skip
    kinds = [kind for kind, _ in trail(front, second)]

    assert script.steps.count("stitch") == 1
    assert kinds.count("RE_DISPATCH") == 2
    assert kinds.count("FLOW_STITCH") == 1
    assert said(second).endswith(away)
    assert said(second).startswith("Butter melts slowly in warm pans, as")
    assert second.headers["crp-quality-flow"].endswith("remediation=stitched")


@pytest.mark.req("DPE-16", "SVC-2")
def test_a_streaming_client_gets_the_last_answer_alone(front, script):
    """No chunk of the first answer; usage of all calls in the last one."""
    script.plays(generate=[WRONG, FIRST])
    headers = {"CRP-Safety-Policy": "upgrade-on-risk reflexive"}
    with openai.OpenAI(base_url=f"{front.http}/v1", api_key="k", max_retries=0, timeout=180) as client:
        stream = client.chat.completions.create(
            model="m", stream=True, stream_options={"include_usage": True}, extra_headers=headers,
            messages=[{"role": "system", "content": CONTEXT}, {"role": "user", "content": ASKED}],
        )  # fmt: skip
        chunks = list(stream)

    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == FIRST
    assert chunks[-1].usage.total_tokens == 15 * len(script.received)


@pytest.mark.req("DPE-16", "BUD-5", "AUD-3")
def test_a_kill_between_rounds_leaves_nothing_charged_or_sealed(tmp_path, script, running):
    """kill -9 while the second round is asked for: the window is not on record, and the session goes on uncharged."""
    settings = {
        "upstream_base_url": running.base_url, "request_timeout_s": 8, "rpc_timeout_s": 2,
        "default_policy": "upgrade-on-risk reflexive",
    }  # fmt: skip
    own = start_front("local", tmp_path, settings)
    hold, asked = threading.Event(), threading.Event()

    def held() -> Any:
        asked.set()
        hold.wait(20)
        return completion(message(FIRST))

    with own.processes:
        script.plays(generate=[FIRST])
        first = ask(own)
        script.plays(generate=[WRONG, held])
        call = threading.Thread(target=_lost, args=(own, token_of(first)))
        call.start()
        reached = asked.wait(30)
        process = next(iter(own.processes.all.values()))
        process.kill()
        hold.set()
        call.join(30)
        process.restart()
        kinds = [kind for kind, _ in trail(own, first)]
        script.plays(generate=[ONWARD])
        after = _patiently(own, token_of(first))

    assert reached
    assert kinds.count("WINDOW_SEALED") == 1
    assert after.headers["crp-context-window"] == "2/200"
    assert after.headers["crp-agent-safety-budget"] == "1.00"


def _lost(front: Front, token: str) -> None:
    with pytest.raises(openai.OpenAIError):
        ask(front, token)


def _patiently(front: Front, token: str) -> Any:
    """Ask until the lease of the call that was killed has run out."""
    for _ in range(40):
        try:
            return ask(front, token)
        except openai.ConflictError:
            threading.Event().wait(0.5)
    raise AssertionError("the lease never ran out")
