"""The adapter of the Responses API, as the fronts see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from interlock.domain import held
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.peers import AuditPeer
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import ApiRequest, Lines, StreamWriter
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.completion import Completion

if TYPE_CHECKING:
    from interlock.sidecar.apis.responses.kept import KeptResponses
    from interlock.sidecar.apis.responses.request import ResponsesRequest

PATH = "/v1/responses"


class Responses:
    """The adapter of POST /v1/responses, and of what is kept of its answers.

    What it needs beyond this is imported when it is first needed.
    """

    path = PATH
    form = held.RESPONSES

    def __init__(self, settings: Settings, audit: AuditPeer) -> None:
        self._settings, self._audit = settings, audit
        self._made: KeptResponses | None = None

    @property
    def _kept(self) -> KeptResponses:
        if self._made is None:
            from interlock.sidecar.apis.responses.kept import KeptResponses

            self._made = KeptResponses(self._audit)
        return self._made

    def authorization(self, lines: Lines) -> list[str]:
        """Return the Authorization headers."""
        return [value for name, value in lines if name == "authorization"]

    async def read(self, caller: Caller, data: bytes) -> ResponsesRequest:
        """Return the checked request in a body, with everything that it goes on from.

        Refused with PREVIOUS_RESPONSE_NOT_FOUND or ITEM_NOT_FOUND where what it names is not kept for this caller.
        """
        from interlock.sidecar.apis.responses import request

        value = strictjson.loads(data, max_depth=self._settings.max_json_depth)
        fields = request.fields_of(value)
        own = await self._kept.resolved(caller.scope, request.own_items(fields["input"]))
        earlier = None
        if "previous_response_id" in fields:
            earlier = await self._kept.earlier(caller.scope, fields["previous_response_id"])
        return request.read(fields, own, earlier, self._settings)

    def answer(self, request: ApiRequest, completion: Completion) -> bytes:
        """Return the Response object of a completion."""
        from interlock.sidecar.apis.responses import answer

        return strictjson.dumps(answer.response(request.echoed, completion))

    def writer(self, request: ApiRequest, head: Completion) -> StreamWriter:
        """Return what writes the Response in events."""
        from interlock.sidecar.apis.responses import writer

        return writer.ResponseWriter(request.echoed, head)

    async def released(self, caller: Caller, request: ApiRequest, completion: Completion) -> None:
        """Keep the request and its answer for later requests of the same caller, unless ``store`` is false."""
        asked = cast("ResponsesRequest", request)
        if asked.keeps:
            await self._kept.keep(caller.scope, asked, completion)

    def error(self, body: dict[str, Any], _status: int) -> dict[str, Any]:
        """Return the refusal as it is: this API has the error shape of chat completions."""
        return body

    async def retrieve(self, caller: Caller, response_id: str) -> bytes:
        """Return a kept Response. Refused with RESPONSE_NOT_FOUND."""
        return strictjson.dumps((await self._kept.one(caller.scope, response_id))["response"])

    async def input_items(self, caller: Caller, response_id: str) -> bytes:
        """Return the items that a kept Response answered. Refused with RESPONSE_NOT_FOUND."""
        return strictjson.dumps(await self._kept.input_items(caller.scope, response_id))

    async def delete(self, caller: Caller, response_id: str) -> bytes:
        """Delete a kept Response. Refused with RESPONSE_NOT_FOUND."""
        await self._kept.drop(caller.scope, response_id)
        return strictjson.dumps({"id": response_id, "object": "response", "deleted": True})
