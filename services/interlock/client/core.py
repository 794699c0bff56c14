"""The session without I/O: the requests to send, and the state to keep. Both session classes run these steps.

A step yields the calls to make in parallel and receives their replies, so one implementation serves threads and asyncio.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from interlock.client.answer import Answer, Delegation
from interlock.client.errors import Conflict, InterlockError, SafetyHalt, error_of

CHAT, DELEGATIONS, BATCH = "/v1/chat/completions", "/crp/v3/delegations", "/crp/v3/batch"
LONGEST_PAUSE_S = 30.0
REVIEW_PAUSE_S = 1.0
"""Pause between two polls for the decision about a held answer."""
_ENDED = {"REJECTED": "HELD_REJECTED", "EXPIRED": "HOLD_EXPIRED"}

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """One HTTP call."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None


@dataclass(frozen=True)
class Reply:
    """An HTTP response; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Pause:
    """A pause: the server said when a retry may help."""

    seconds: float


Steps = Generator[Sequence[Ask] | Pause, Sequence[Reply], T]


@dataclass
class State:
    """State that a session keeps between calls."""

    standing: Mapping[str, str] = field(default_factory=dict)
    """Headers of every call, such as CRP-Safety-Policy."""
    first: Mapping[str, str] = field(default_factory=dict)
    """Headers of only the first call: those of a delegation."""
    token: str = ""
    session_id: str = ""
    hmac: str = ""
    """Window HMAC of the latest answer."""
    retries: int = 2
    """How often a call is repeated that the server refused with a retry delay."""

    def headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the headers of the next call."""
        own = {"CRP-Session-Token": self.token} if self.token else self.first
        return {**self.standing, **own, **(more or {})}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Keep the token for the next call (SPEC-007 §2), also from a refusal, whose token may be newer than ours."""
        self.token = token_in(headers) or self.token
        self.session_id = headers.get("crp-context-session-id") or self.session_id
        self.hmac = headers.get("crp-provenance-hmac") or self.hmac


def token_in(headers: Mapping[str, str]) -> str:
    """Return the token that a response sets; empty when it sets none."""
    first = headers.get("crp-set-session", "").partition(";")[0].strip()
    return first.removeprefix("token=") if first.startswith("token=") else ""


def chat(state: State, body: Mapping[str, Any], more: Mapping[str, str]) -> Steps[Answer]:
    """Make one governed call after the latest one of the session."""
    return (yield from _after_the_lost(state, body, more, _answer))


def streamed(state: State, body: Mapping[str, Any], more: Mapping[str, str]) -> Steps[Reply]:
    """Make one governed call whose answer may leave in parts, and return the reply that begins it."""
    return (yield from _after_the_lost(state, {**body, "stream": True}, more, _good))


def _after_the_lost(
    state: State, body: Mapping[str, Any], more: Mapping[str, str], read: Callable[[Reply], T]
) -> Steps[T]:
    again = False
    while True:
        reply = yield from _sent(state, lambda: _chat(state, body, more))
        state.learn(reply.headers)
        try:
            return read(reply)
        except Conflict as conflict:
            # The previous call was charged, but its answer was lost in transit. Continue with a newer token.
            if again or conflict.reason != "WINDOW_ALREADY_SETTLED":
                raise
            again = True


def reviewed(state: State, halt: SafetyHalt, body: Mapping[str, Any], wait_s: float) -> Steps[Answer]:
    """Wait at most *wait_s* seconds for the decision about the held answer of *halt*; get it if approved (SPEC-012 §6.2).

    The session may have continued meanwhile: a held answer brings no newer token.
    """
    if not halt.reviewable:
        raise ValueError(f"nothing is kept for review: {halt.reason}")
    token = token_in(halt.headers) or state.token
    own = {**state.standing, "CRP-Session-Token": token}
    path = f"/crp/v3/session/{halt.headers['crp-context-session-id']}/held/{halt.metadata['window_id']}"
    while True:
        reply = yield from _sent(state, lambda: Ask("GET", path, own))
        shown = _value(reply)
        if shown["status"] != "PENDING":
            break
        if wait_s <= 0:
            raise halt
        yield Pause(min(REVIEW_PAUSE_S, wait_s))
        wait_s -= REVIEW_PAUSE_S
    if not shown["oversight_token"]:
        reason = _ENDED.get(shown["status"], f"HELD_{shown['status']}")
        error = {"message": "the held answer is not released", "code": reason.lower()}
        raise error_of(403, reply.headers, {"error": error, "reason": reason, "metadata": shown})
    more = {**own, "CRP-Oversight-Token": shown["oversight_token"]}
    return _answer((yield from _sent(state, lambda: _json("POST", CHAT, more, body))))


def fan_out(state: State, bodies: Sequence[Mapping[str, Any]]) -> Steps[list[Answer | InterlockError]]:
    """Make all calls in parallel, each in its own window after the session's latest (SPEC-004 §6)."""
    more = {"CRP-Context-Strategy": "fan-out", **_own_parent(state)}
    replies = yield [_chat(state, body, more) for body in bodies]
    return [_either(reply) for reply in replies]


def fan_in(state: State, answers: Sequence[Answer], body: Mapping[str, Any], *, partial: bool) -> Steps[Answer]:
    """Merge windows of this session into one (SPEC-004 §7)."""
    pointers = [answer.continuation_id for answer in answers]
    if not pointers or None in pointers:
        raise ValueError("a fan-in needs answers whose windows can be continued")
    more = {
        "CRP-Context-Continuation-Id": ", ".join(pointer for pointer in pointers if pointer),
        "CRP-Context-Strategy": "fan-in",
        **({"CRP-Agent-Fan-In-Policy": "partial"} if partial else {}),
    }
    state.token = answers[0].token
    return (yield from chat(state, body, more))


def delegate(state: State, agent_type: str, *, lifetime_s: int, approval: str) -> Steps[Delegation]:
    """Get a delegation: the right of one sub-agent to start one child session."""
    wanted: dict[str, Any] = {"agent_type": agent_type} if agent_type else {}
    if lifetime_s:
        wanted["lifetime_s"] = lifetime_s
    more = {"CRP-Oversight-Token": approval} if approval else {}
    reply = yield from _sent(state, lambda: _json("POST", DELEGATIONS, state.headers(more), wanted))
    value = _value(reply)
    return Delegation(tuple(value["headers"].items()), value["expires_at"])


def batch(state: State, bodies: Sequence[Mapping[str, Any]]) -> Steps[list[Answer | InterlockError]]:
    """Govern several requests in one call; a refusal of one does not stop the others (SPEC-008 §8)."""
    items = [{"id": str(number), "body": body} for number, body in enumerate(bodies)]
    reply = yield from _sent(state, lambda: _json("POST", BATCH, state.headers(), {"items": items}))
    state.learn(reply.headers)
    results = _value(reply)["results"]
    return [_either(_item_reply(result)) for result in results]


def dag(state: State, form: str, *, tree: bool) -> Steps[str]:
    """Return the window DAG in one of the formats mermaid, dot, json, text."""
    path = f"/crp/v3/session/{state.session_id}/dag?format={form}" + ("&tree=true" if tree else "")
    reply = yield from _sent(state, lambda: Ask("GET", path, state.headers()))
    _value(reply, text=True)
    return reply.body.decode()


def terminate(state: State) -> Steps[None]:
    """End the session permanently; a session without any call needs no end."""
    if not state.token:
        return
    (reply,) = yield [Ask("DELETE", f"/crp/v3/session/{state.session_id}", state.headers())]
    _value(reply, text=True)


def _sent(state: State, make: Any) -> Steps[Reply]:
    """Make a call, and repeat it when the server says that waiting helps."""
    for attempt in range(state.retries + 1):
        (reply,) = yield [make()]
        wait = reply.headers.get("retry-after", "")
        if reply.status not in {409, 429, 503} or not wait.isdecimal() or attempt == state.retries:
            break
        yield Pause(min(float(wait), LONGEST_PAUSE_S))
    return reply


def _chat(state: State, body: Mapping[str, Any], more: Mapping[str, str]) -> Ask:
    return _json("POST", CHAT, state.headers(more), body)


def _own_parent(state: State) -> dict[str, str]:
    return {"CRP-Agent-Session-Parent": state.session_id} if state.session_id else {}


def _json(method: str, path: str, headers: Mapping[str, str], value: Any) -> Ask:
    return Ask(method, path, {**headers, "Content-Type": "application/json"}, json.dumps(value).encode())


def _either(reply: Reply) -> Answer | InterlockError:
    try:
        return _answer(reply)
    except InterlockError as error:
        return error


def _answer(reply: Reply) -> Answer:
    return Answer(_value(reply), reply.headers, token_in(reply.headers))


def _good(reply: Reply) -> Reply:
    _value(reply, text=True)
    return reply


def _item_reply(result: Mapping[str, Any]) -> Reply:
    headers = {name.lower(): str(value) for name, value in (result.get("headers") or {}).items()}
    return Reply(int(result["status"]), headers, json.dumps(result.get("body") or {}).encode())


def _value(reply: Reply, *, text: bool = False) -> Any:
    """Return the JSON of a reply, or raise its refusal."""
    good = 200 <= reply.status < 300
    if good and text:
        return None
    try:
        value = json.loads(reply.body)
    except ValueError:
        value = {}
    if not good or not isinstance(value, dict) or not value:
        raise error_of(reply.status, reply.headers, value if isinstance(value, dict) else {})
    return value
