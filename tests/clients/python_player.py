"""Plays clients/conformance.yaml with the Python client, as the runners of the other languages do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from interlock.client import Answer, Delegation, InterlockError, Session

Outcome = tuple[str, str]
"""Name of the case with the number of the step, and what differed; empty: nothing."""


def play(script: Mapping[str, Any], base_url: str) -> list[Outcome]:
    """Return what differed in each step."""
    outcomes = []
    for case in script["cases"]:
        with ExitStack() as ends:
            player = _Player(script, base_url, ends)
            outcomes += [(f"{case['name']} {n}", player.play(step)) for n, step in enumerate(case["steps"], 1)]
    return outcomes


class _Player:
    def __init__(self, script: Mapping[str, Any], base_url: str, ends: ExitStack) -> None:
        self.script, self.base_url, self.ends = script, base_url, ends
        self.sessions: dict[str, Session] = {}
        self.delegations: dict[str, Delegation] = {}
        self.answers: dict[str, Answer] = {}
        self.parts: list[str] = []

    def play(self, step: Mapping[str, Any]) -> str:
        session = self._session(step)
        before = session.session_id
        want, self.parts = step["expect"], []
        try:
            return _differs(want, self._call(session, step), before, session.session_id, self.parts)
        except InterlockError as error:
            heard = "".join(self.parts) == want.get("heard", "")
            expected = (type(error).__name__, error.reason) == (want.get("error"), want.get("reason"))
            return "" if expected and heard else f"{type(error).__name__} {error} after {self.parts}"

    def _session(self, step: Mapping[str, Any]) -> Session:
        name = step["session"]
        if name not in self.sessions:
            key = self.script["keys"].get(step.get("key", ""), "")
            trace = {"traceparent": f"00-{step['trace']}-00f067aa0ba902b7-01"} if "trace" in step else {}
            self.sessions[name] = self.ends.enter_context(Session(
                self.base_url, api_key=key, model=self.script["model"], policy=step.get("policy", ""), headers=trace,
                delegation=self.delegations.get(step.get("delegation", "")),
            ))  # fmt: skip
        return self.sessions[name]

    def _call(self, session: Session, step: Mapping[str, Any]) -> Answer | str | None:
        if step["call"] == "delegate":
            self.delegations[step.get("as", "")] = session.delegation(step["agent_type"])
            return None
        if step["call"] == "dag":
            return session.dag("text")
        if step["call"] == "terminate":
            session.terminate()
            return None
        results = [self.answers[name] for name in step.get("results", ())]
        asked = {"facts": step.get("facts", ()), "results": results}
        if step["call"] == "stream":
            with session.stream(step["ask"], **asked) as stream:
                for part in stream:  # kept one by one: an error comes behind them
                    self.parts.append(part)
            answer = stream.answer
        else:
            answer = session.chat(step["ask"], **asked)
        self.answers[step.get("as", "")] = answer
        return answer


def _differs(want: Mapping[str, Any], got: Answer | str | None, before: str, after: str, parts: Sequence[str]) -> str:
    text = got.text if isinstance(got, Answer) else got or ""
    headers = got.headers if isinstance(got, Answer) else {}
    if "error" in want:
        return f"answered, and was to be refused with {want['reason']}"
    if len(parts) < want.get("parts", 0) or ("parts" in want and "".join(parts) != text):
        return f"parts: {parts}"
    if want.get("text", text) != text or want.get("contains", "") not in text:
        return f"text: {text}"
    if "same_session" in want and before != after:
        return f"another session: {after}"
    return "; ".join(
        f"{name}: {headers.get(name)}" for name, value in want.get("headers", {}).items() if headers.get(name) != value
    )
