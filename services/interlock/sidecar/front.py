"""What both fronts share: from a checked request to a governed call (I14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import exhausted, invalid
from interlock.domain.headers import Asked
from interlock.runtime.config import Settings
from interlock.sidecar import chat, completion, envelope, strictjson
from interlock.sidecar.admission import Admission
from interlock.sidecar.call import Call
from interlock.sidecar.completion import Answer
from interlock.sidecar.envelope import Envelope
from interlock.sidecar.events import Dispatch
from interlock.sidecar.guard import Governed, Guard
from interlock.sidecar.identity import ApiKeys, Caller
from interlock.sidecar.propagation import Known
from interlock.sidecar.sessions import Sessions
from interlock.sidecar.strategies import PUSH
from interlock.sidecar.upstream import Upstream


@dataclass(frozen=True)
class Front:
    """The sidecar's parts, as its HTTP and gRPC sides use them."""

    settings: Settings
    keys: ApiKeys
    guard: Guard
    admission: Admission
    sessions: Sessions
    upstream: Upstream

    def read_chat(self, data: bytes) -> chat.Chat:
        """Return the checked chat request in *data*. Refused before anything is begun."""
        if len(data) > self.settings.max_body_bytes:
            raise too_large(self.settings.max_body_bytes)
        return chat.read(strictjson.loads(data, max_depth=self.settings.max_json_depth), self.settings)

    async def chat(
        self,
        entry: str,
        caller: Caller,
        asked: Asked,
        asked_chat: chat.Chat,
        known: Known,
        *,
        facts: Sequence[common_pb2.Fact] = (),
        query: str = "",
    ) -> Governed:
        """Govern a chat request."""
        self.upstream.require()
        evidence = envelope.of_chat(asked_chat, self.settings, facts=facts, query=query)
        body = chat.steered(asked_chat, grounding_mode=asked.grounding_mode, seed=asked.seed)
        dispatch = Dispatch(
            provider=self.upstream.provider,
            model=body["model"],
            strategy=PUSH,
            temperature=body.get("temperature"),
            token_budget=body.get("max_completion_tokens") or body.get("max_tokens"),
            seed=body.get("seed"),
            choices=asked_chat.choices,
        )

        async def model(asked_body: Mapping[str, Any], timeout_s: float) -> Answer:
            data = await self.upstream.complete(asked_body, key=caller.key, timeout_s=timeout_s)
            wanted = int(asked_body.get("n") or 1)
            return completion.read(data, wanted=wanted, max_depth=self.settings.max_json_depth)

        return await self.guard.govern(Call(entry, caller.scope, asked, evidence, dispatch, body, model, known))

    async def text(
        self,
        caller: Caller,
        asked: Asked,
        known: Known,
        *,
        text: str,
        facts: Sequence[common_pb2.Fact],
        query: str,
    ) -> Governed:
        """Govern a completion that the caller brings; it is charged and sealed as if it had been dispatched."""
        if not text:
            raise invalid("INVALID_REQUEST", "text must not be empty", param="text")
        evidence = Envelope(
            facts=envelope.checked_facts(facts, self.settings),
            query=envelope.checked_text("query", query, self.settings),
            prompt="",
        )
        brought = _brought(envelope.checked_text("text", text, self.settings))
        dispatch = Dispatch("caller", "brought-by-caller", PUSH, None, None, asked.seed, 1)
        return await self.guard.govern(
            Call("check", caller.scope, asked, evidence, dispatch, {}, partial(_given, brought), known)
        )


def too_large(limit: int) -> Exception:
    """Return the refusal of a request body."""
    return exhausted("REQUEST_TOO_LARGE", f"the request exceeds {limit} bytes", limit=str(limit))


def _brought(text: str) -> Answer:
    return Answer(text.encode(), {}, (dpe_pb2.Output(choice_index=0, text=text, kind="content"),), None)


async def _given(answer: Answer, _body: Mapping[str, Any], _timeout_s: float) -> Answer:
    return answer
