"""A governed session for threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from interlock.client import core
from interlock.client.answer import Answer, Delegation
from interlock.client.core import Ask, Pause, Reply, State, Steps
from interlock.client.errors import InterlockError, SafetyHalt
from interlock.client.request import Result, body_of
from interlock.client.settings import Settings, settings_of
from interlock.client.streams import ASKED, AnswerStream, Assembly
from interlock.client.transport import GovernedTransport, lowered

T = TypeVar("T")


class Session:
    """One agent's session. It keeps the token. Calls run one after another; the calls of a fan-out run in parallel.

    ``with Session(model="...") as s: s.chat("...")``. Leaving the block closes the connections, but does not
    end the session: ``terminate`` ends it permanently.
    """

    def __init__(
        self,
        base_url: str = "",
        *,
        api_key: str = "",
        model: str = "",
        policy: str = "",
        headers: Mapping[str, str] | None = None,
        delegation: Delegation | None = None,
        timeout_s: float = 120.0,
        retries: int = 2,
    ) -> None:
        self._settings = settings_of(base_url, api_key, model, timeout_s)
        standing = {**({"CRP-Safety-Policy": policy} if policy else {}), **(headers or {})}
        self.state = State(standing, delegation.headers if delegation else {}, retries=retries)
        self._lock = threading.Lock()
        self._transport = httpx.HTTPTransport()
        self._http = httpx.Client(**self._settings.http(), transport=self._transport)

    @property
    def session_id(self) -> str:
        """Id of the session; empty before its first call."""
        return self.state.session_id

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]] | str,
        *,
        facts: Sequence[Mapping[str, Any]] = (),
        results: Sequence[Result] = (),
        sub_queries: Sequence[str] = (),
        strategy: str = "",
        headers: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> Answer:
        """Return the governed answer. Raises an ``InterlockError`` when there is none to release."""
        body = body_of(messages, self._settings.body(parameters), facts=facts, results=results, sub_queries=sub_queries)
        more = {**({"CRP-Context-Strategy": strategy} if strategy else {}), **(headers or {})}
        with self._lock:
            return self._run(core.chat(self.state, body, more))

    def stream(
        self,
        messages: Sequence[Mapping[str, Any]] | str,
        *,
        facts: Sequence[Mapping[str, Any]] = (),
        results: Sequence[Result] = (),
        headers: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> AnswerStream:
        """Return the parts of the governed answer as they are released. Other calls of the session wait for its end."""
        body = body_of(messages, self._settings.body(parameters), facts=facts, results=results)
        return AnswerStream(self._parts(body, {**ASKED, **(headers or {})}))

    def _parts(self, body: Mapping[str, Any], more: Mapping[str, str]) -> Generator[str, None, Answer]:
        begun: list[httpx.Response] = []

        def opened(asks: Sequence[Ask]) -> list[Reply]:
            response = self._http.send(_request(self._http, asks[0]), stream=True)
            begun[:] = [response]
            if not response.is_success:
                response.read()
            return [
                Reply(response.status_code, lowered(response.headers), b"" if response.is_success else response.content)
            ]

        with self._lock:
            try:
                reply = self._run(core.streamed(self.state, body, more), opened)
                assembly = Assembly(self.state, reply.headers)
                for data in begun[0].iter_bytes():
                    if text := assembly.feed(data):
                        yield text
                return assembly.answer()
            finally:
                for response in begun:
                    response.close()

    def reviewed(self, halt: SafetyHalt, *, wait_s: float = 0.0) -> Answer:
        """Return the held answer of *halt* once a reviewer has approved it. Wait at most *wait_s* seconds.

        Raises *halt* again while there is no decision, and an ``InterlockError`` with HELD_REJECTED or HOLD_EXPIRED otherwise.
        """
        body = body_of("The answer that was held.", self._settings.body({}))
        return self._run(core.reviewed(self.state, halt, body, wait_s))

    def fan_out(self, requests: Sequence[Sequence[Mapping[str, Any]] | str], **parameters: Any) -> list[Answer]:
        """Make several calls in parallel, each in its own window after the latest one.

        Raises the first refusal, if there is one. Its ``answers`` has the other answers.
        """
        bodies = [body_of(messages, self._settings.body(parameters)) for messages in requests]
        with self._lock:
            return all_of(self._run(core.fan_out(self.state, bodies)))

    def fan_in(
        self,
        answers: Sequence[Answer],
        messages: Sequence[Mapping[str, Any]] | str,
        *,
        partial: bool = False,
        sub_queries: Sequence[str] = (),
        **parameters: Any,
    ) -> Answer:
        """Merge windows of this session into one answer; *partial* continues without failed windows."""
        body = body_of(messages, self._settings.body(parameters), sub_queries=sub_queries)
        with self._lock:
            return self._run(core.fan_in(self.state, answers, body, partial=partial))

    def batch(
        self, requests: Sequence[Sequence[Mapping[str, Any]] | str], **parameters: Any
    ) -> list[Answer | InterlockError]:
        """Ask independent questions in one call; each result is an answer or an error."""
        bodies = [body_of(messages, self._settings.body(parameters)) for messages in requests]
        with self._lock:
            return self._run(core.batch(self.state, bodies))

    def follow(self, answer: Answer) -> Session:
        """Return a session that continues from *answer*'s window: one branch of a fan-out."""
        branch = self._like(self._settings)
        branch.state = State(self.state.standing, token=answer.token, session_id=answer.session_id)
        return branch

    def delegation(self, agent_type: str = "", *, lifetime_s: int = 0, approval: str = "") -> Delegation:
        """Return what a sub-agent in another process needs to start a child session."""
        with self._lock:
            return self._run(core.delegate(self.state, agent_type, lifetime_s=lifetime_s, approval=approval))

    def delegate(
        self, agent_type: str = "", *, base_url: str = "", api_key: str = "", model: str = "", approval: str = ""
    ) -> Session:
        """Return the child session of a sub-agent, with its own sidecar and key if they are given."""
        granted = self.delegation(agent_type, approval=approval)
        child = self._like(self._settings.other(base_url, api_key, model))
        child.state = State({}, granted.headers, retries=self.state.retries)
        return child

    def dag(self, form: str = "text", *, tree: bool = False) -> str:
        """Return the window DAG as text, mermaid, dot or json; with the sessions below it if *tree* is set."""
        return self._run(core.dag(self.state, form, tree=tree))

    def terminate(self) -> None:
        """End the session permanently."""
        with self._lock:
            self._run(core.terminate(self.state))

    def result(self, sub_query: str = "") -> dict[str, str]:
        """Return the reference by which an orchestrator names the latest answer of this session."""
        named = {"session_id": self.state.session_id, "hmac": self.state.hmac}
        return {**named, "sub_query": sub_query} if sub_query else named

    def http_client(self) -> httpx.Client:
        """Return an httpx client whose calls are this session's: ``OpenAI(http_client=session.http_client())``."""
        governed = GovernedTransport(self.state, self._transport, self._lock)
        return httpx.Client(**self._settings.http(), transport=governed)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Do nothing: the first call starts the session."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close the connections."""
        self.close()

    def _like(self, settings: Settings) -> Session:
        return Session(settings.base_url, api_key=settings.api_key, model=settings.model, timeout_s=settings.timeout_s)

    def _run(self, steps: Steps[T], replies: Callable[[Sequence[Ask]], list[Reply]] | None = None) -> T:
        """Run *steps* to their end."""
        replies = replies or self._replies
        try:
            wanted = next(steps)
            while True:
                if isinstance(wanted, Pause):
                    time.sleep(wanted.seconds)
                    wanted = next(steps)
                else:
                    wanted = steps.send(replies(wanted))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _replies(self, asks: Sequence[Ask]) -> list[Reply]:
        if len(asks) == 1:
            return [self._reply(asks[0])]
        with ThreadPoolExecutor(len(asks)) as pool:
            return list(pool.map(self._reply, asks))

    def _reply(self, ask: Ask) -> Reply:
        response = self._http.request(ask.method, ask.path, headers=dict(ask.headers), content=ask.body)
        return Reply(response.status_code, lowered(response.headers), response.content)


def _request(http: httpx.Client, ask: Ask) -> httpx.Request:
    return http.build_request(ask.method, ask.path, headers=dict(ask.headers), content=ask.body)


def all_of(results: Sequence[Answer | InterlockError]) -> list[Answer]:
    """Return all answers, or raise the first refusal with the remaining answers."""
    answers = [result for result in results if isinstance(result, Answer)]
    for result in results:
        if isinstance(result, InterlockError):
            result.answers = answers
            raise result
    return answers
