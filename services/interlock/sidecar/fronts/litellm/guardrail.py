"""The guardrail's endpoint: a request is passed on while its session stands, an answer when the guard releases it (MSH-3)."""

from __future__ import annotations

import asyncio
import hmac
import time

import structlog
from pydantic import SecretStr
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from interlock.domain.errors import Refused, unauthenticated, unavailable
from interlock.domain.headers import headers
from interlock.runtime.http.outcomes import REASON
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.litellm import contract
from interlock.sidecar.fronts.litellm.contract import GuardrailQuestion
from interlock.sidecar.fronts.litellm.waiting import Passed, Waiting
from interlock.sidecar.fronts.reading import CallerGone, body_of, while_connected
from interlock.sidecar.fronts.responses import json_response
from interlock.sidecar.openai import chat, strictjson
from interlock.sidecar.trail.response_headers import ResponseHeaders, of_refusal

log = structlog.get_logger()

ENTRY = "litellm"
TWICE = 2
"""LiteLLM sends every text of a request twice: by itself, and in its message."""


class Guardrail:
    """Answers LiteLLM. Whatever goes wrong is BLOCKED with its reason: an error status could be set to pass (docs/litellm.md)."""

    def __init__(self, front: Front, key: SecretStr) -> None:
        """*key* is what LiteLLM presents: it brings answers and says whose they are, so no agent may have it."""
        self._front, self._key = front, key.get_secret_value()
        self._waiting = Waiting(time.monotonic)

    async def answer(self, request: Request, reply: ResponseHeaders) -> Response:
        """Answer one question."""
        try:
            await self._judge(request, reply)
        except (CallerGone, ClientDisconnect):
            raise
        except Refused as refused:
            return _blocked(request, refused, reply)
        except asyncio.CancelledError:  # by the server, when its time to drain is over
            return _blocked(request, unavailable("SHUTTING_DOWN", "this sidecar is ending; try again"), reply)
        except Exception:
            log.exception("litellm.defect")
            return _blocked(request, internal(), reply)
        return json_response(contract.passed())

    async def _judge(self, request: Request, reply: ResponseHeaders) -> None:
        _require(self._key, request)
        settings = self._front.settings
        data = await body_of(request, TWICE * settings.max_body_bytes)
        question = contract.read(strictjson.loads(data, max_depth=settings.max_json_depth))
        caller = self._front.keys.vouched(question.key)
        if question.about == contract.REQUEST:
            await self._request(question, caller, len(data), reply)
        else:
            await while_connected(request, self._response(question, caller, reply))

    async def _request(self, question: GuardrailQuestion, caller: Caller, size: int, reply: ResponseHeaders) -> None:
        """Refuse a request that cannot be governed, or whose agent, caller or session may not go on: its provider is not asked."""
        front, asked = self._front, headers.read(question.lines)
        front.guard.require_room(caller)
        checked = chat.read(question.chat, front.settings)
        named = front.bindings.read(caller.scope, question.lines, checked).said.session_id
        await front.sessions.in_standing(caller, asked, named, reply, Deadline(front.settings.rpc_timeout_s))
        self._waiting.keep((caller.scope, question.call_id), Passed(checked, question.lines, size))

    async def _response(self, question: GuardrailQuestion, caller: Caller, reply: ResponseHeaders) -> None:
        """Take an answer through the guard with the request that it answers; only a released one returns."""
        front = self._front
        passed = self._waiting.take((caller.scope, question.call_id))
        answer = contract.answer(question, passed.chat.body["model"], max_depth=front.settings.max_json_depth)
        binding = front.bindings.read(caller.scope, passed.lines, passed.chat)
        asked = headers.read(passed.lines)
        governed = await front.brought(ENTRY, caller, asked, passed.chat, answer=answer, reply=reply, binding=binding)
        governed.released()


def _require(key: str, request: Request) -> None:
    """Refuse whoever is not LiteLLM, without telling how much of the key was right (A-11)."""
    given = request.headers.getlist("x-api-key")
    if len(given) != 1 or not hmac.compare_digest(given[0].encode("latin-1"), key.encode()):
        raise unauthenticated("LITELLM_KEY_INVALID", "LiteLLM presents its key in x-api-key: the guardrail's api_key")


def _blocked(request: Request, refused: Refused, reply: ResponseHeaders) -> Response:
    request.scope[REASON] = refused.reason
    reply.set(of_refusal(refused.reason))
    log.info("litellm.blocked", session_id=reply.session_id, reason=refused.reason)
    return json_response(contract.blocked(refused, reply))
