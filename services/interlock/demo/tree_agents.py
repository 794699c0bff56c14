"""The agents of the tree, each in its own process: an orchestrator, and specialists that it delegates to over HTTP.

They use only ``interlock.client``. They report their actions as JSON lines on standard output.
``python -m interlock.demo.tree_agents specialist NAME`` · ``python -m interlock.demo.tree_agents orchestrator URL URL URL``
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from interlock.client import Answer, Delegation, Forbidden, InterlockError, SafetyHalt, Session, result_of
from interlock.demo.recording import Recording, load
from interlock.demo.tree_script import OPENING, SPECIALISTS, SYNTHESIS

TASK_TIMEOUT_S = 300.0
SPENT = "SAFETY_BUDGET_DEPLETED"


def say(agent: str, event: str, **fields: Any) -> dict[str, Any]:
    """Print one line about an action of an agent, and return it."""
    line = {"agent": agent, "event": event, **fields}
    print(json.dumps(line), flush=True)  # noqa: T201 - the demonstration reads it
    return line


def answered(agent: str, question: str, answer: Answer) -> dict[str, Any]:
    """Report a released answer."""
    return say(
        agent, "answered", question=question, answer=answer.text, session_id=answer.session_id, risk=answer.risk,
        budget=str(answer.budget), strategy=answer.strategy, headers=answer.upstream(),
    )  # fmt: skip


def refused(agent: str, question: str, error: InterlockError) -> dict[str, Any]:
    """Report a refused answer."""
    return say(
        agent, "refused", question=question, status=error.status, reason=error.reason,
        session_id=error.headers.get("crp-context-session-id", ""),
        risk=error.headers.get("crp-safety-hallucination-risk", ""),
        halt_reason=error.halt_reason if isinstance(error, SafetyHalt) else "",
    )  # fmt: skip


def conversation(recording: Recording, question: str) -> list[dict[str, str]]:
    """Return the messages that ask *question* about the recorded passage."""
    return [{"role": "system", "content": recording.passage}, {"role": "user", "content": question}]


class Specialist:
    """Does tasks about one passage, each in a child session of the delegating agent."""

    def __init__(self, name: str) -> None:
        self._name, self._recording = name, load(SPECIALISTS[name].recording)

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(routes=[Route("/tasks", self._task, methods=["POST"])])

    async def _task(self, request: Request) -> Response:
        """Answer every question of the task with one JSON line, until the session accepts no more calls."""
        delegation = Delegation.received(request.headers.items())
        if delegation is None:
            return Response(status_code=401)
        came = sorted(name for name in request.headers if name.startswith("crp-"))
        say(self._name, "delegated to", headers=came, loop_depth=delegation.loop_depth)
        questions = (await request.json())["questions"]
        return StreamingResponse(self._lines(delegation, questions), media_type="application/x-ndjson")

    def _lines(self, delegation: Delegation, questions: list[str]) -> Iterator[str]:
        with Session(delegation=delegation) as child:
            for question in questions:
                try:
                    line = answered(self._name, question, child.chat(conversation(self._recording, question)))
                except SafetyHalt as halt:
                    line = refused(self._name, question, halt)
                yield json.dumps(line) + "\n"
                if line.get("halt_reason") == SPENT:
                    return


def serve(name: str) -> None:
    """Serve one specialist on a free port, which is reported first."""
    listener = socket.create_server(("127.0.0.1", 0))
    say(name, "listening", url=f"http://127.0.0.1:{listener.getsockname()[1]}/tasks")
    config = uvicorn.Config(Specialist(name).app(), log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run([listener])


def orchestrate(urls: Mapping[str, str]) -> None:
    """Delegate to every specialist, merge the answers of the first two, and continue until no more calls are accepted."""
    opening = load(SPECIALISTS["health"].recording)
    with Session() as session:
        answered("orchestrator", OPENING, session.chat(conversation(opening, OPENING)))
        results = []
        for name, specialist in SPECIALISTS.items():
            last = _delegate(session, name, urls[name], specialist.questions)
            if specialist.merged:
                results.append(result_of(last["headers"].items(), specialist.questions[-1]))
            if len(results) == sum(one.merged for one in SPECIALISTS.values()):
                _ask(session, SYNTHESIS, results)
                results = []
        _ask(session, SYNTHESIS, [])
        try:
            session.delegation("storage")
            say("orchestrator", "delegated", to="storage")
        except (SafetyHalt, Forbidden) as error:
            refused("orchestrator", "another delegation", error)


def _delegate(session: Session, name: str, url: str, questions: tuple[str, ...]) -> dict[str, Any]:
    """Delegate a task and return the specialist's last line."""
    delegation = session.delegation(name)
    say("orchestrator", "delegated", to=name, loop_depth=delegation.loop_depth, headers=sorted(delegation.headers))
    task = {"questions": questions}
    last: dict[str, Any] = {}
    with httpx.stream("POST", url, json=task, headers=delegation.headers, timeout=TASK_TIMEOUT_S) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            last = json.loads(line)
    return last


def _ask(session: Session, question: str, results: list[dict[str, str]]) -> None:
    try:
        answered("orchestrator", question, session.chat(question, results=results))
    except InterlockError as error:
        refused("orchestrator", question, error)


def main() -> None:
    """Run the agent that the arguments name."""
    kind, *rest = sys.argv[1:]
    if kind == "specialist":
        serve(rest[0])
    else:
        orchestrate(dict(zip(SPECIALISTS, rest, strict=True)))


if __name__ == "__main__":
    main()
