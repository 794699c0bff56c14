"""A call of any API, from its bytes to its answer: read by the API's adapter, governed, written by the adapter (API-1 to API-4)."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from interlock.domain.errors import unauthenticated
from interlock.runtime.keys.api_keys import Caller
from interlock.sidecar.apis.api import Api, ApiRequest, KeepingApi, form_of
from interlock.sidecar.fronts import streamed
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.reading import body_of, header_lines, read_headers, while_connected
from interlock.sidecar.fronts.release import Release, releasing
from interlock.sidecar.fronts.responses import SAFE, headers_of_reply, json_response, session_json
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.trail.response_headers import ResponseHeaders

NOT_MODIFIED = 304


async def generate(api: Api, front: Front, request: Request, reply: ResponseHeaders) -> Response:
    """Govern a request of *api* and answer it; or end the session, or hand out what was held, where the headers ask for that."""
    caller, asked = read_headers(front, request, delegating=True, authorization=api.authorization)
    if asked.terminate:
        return await terminate(front, caller, asked.session_token)
    if releasing(asked):
        given = await api.read(caller, await body_of(request, front.settings.max_body_bytes))
        release = await front.releases.release(caller, asked, reply, forms=[form_of(api, given)])
        return await _answered(api, caller, given, _unpacked(release), reply)
    front.upstream.require()
    front.guard.require_room(caller)
    given = await api.read(caller, await body_of(request, front.settings.max_body_bytes))
    if await front.unmodified(caller, asked, given.chat, reply):
        return Response(status_code=NOT_MODIFIED, headers=headers_of_reply(reply))
    binding = front.bindings.read(caller.scope, header_lines(request), given.chat, cookies=True)
    form, live = form_of(api, given), front.live(caller, asked, given.chat) if given.chat.stream else None
    governing = front.chat("http", caller, asked, given.chat, reply, binding=binding, form=form, live=live)
    governed = await while_connected(request, streamed.begun(governing, live) if live else governing)
    if isinstance(governed, streamed.StreamedAnswer):
        return governed.response(api, caller, given, reply)
    return await _answered(api, caller, given, governed.released(), reply)


async def kept(
    api: KeepingApi, front: Front, request: Request, _reply: ResponseHeaders, *, inputs: bool = False
) -> Response:
    """Show or delete a kept answer, or show what it answered."""
    caller, _ = read_headers(front, request, authorization=api.authorization)
    work = api.delete if request.method == "DELETE" else api.input_items if inputs else api.retrieve
    body = await work(caller, request.path_params["answer_id"])
    return Response(body, headers=SAFE, media_type="application/json")


async def terminate(front: Front, caller: Caller, token: str | None) -> Response:
    """End the session of *token*."""
    return json_response(session_json(await front.sessions.terminate(required(token), caller.scope)))


def required(token: str | None) -> str:
    """Return the session token. Refused with SESSION_TOKEN_REQUIRED where there is none."""
    if token is None:
        raise unauthenticated("SESSION_TOKEN_REQUIRED", "this needs CRP-Session-Token")
    return token


async def _answered(
    api: Api, caller: Caller, given: ApiRequest, answer: Completion, reply: ResponseHeaders
) -> Response:
    await api.released(caller, given, answer)
    headers = headers_of_reply(reply)
    if given.chat.stream:
        events = api.writer(given, answer).end(answer)
        return Response(events, headers=headers, media_type="text/event-stream")
    return Response(api.answer(given, answer), headers=headers, media_type="application/json")


def _unpacked(release: Release) -> Completion:
    """Return a held response, which an approval releases without a window of its own (SPEC-012 §6.2)."""
    return Completion(release.held.body, json.loads(release.held.body), (), None)
