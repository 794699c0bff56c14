"""What is kept of Responses for what goes on from them: the items of a request and of its answer, for its caller alone (docs/adr/0033)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.errors import Refused, not_found
from interlock.runtime.rpc.peers import AuditPeer
from interlock.sidecar.apis.responses import answer
from interlock.sidecar.apis.responses.checks import text
from interlock.sidecar.apis.responses.request import Earlier, ResponsesRequest
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.completion import Completion

FORM = 1
UNKNOWN_PREVIOUS, UNKNOWN_RESPONSE, UNKNOWN_ITEM = "PREVIOUS_RESPONSE_NOT_FOUND", "RESPONSE_NOT_FOUND", "ITEM_NOT_FOUND"
_NOT_KEPT = "KEPT_ANSWER_NOT_FOUND"


class KeptResponses:
    """Keeps Responses with the audit service, and finds them for the caller that they were kept for."""

    def __init__(self, audit: AuditPeer) -> None:
        self._audit = audit

    async def keep(self, scope: str, request: ResponsesRequest, completion: Completion) -> None:
        """Keep a request and its answer."""
        made = answer.response(request.echoed, completion)
        kept = strictjson.dumps({"v": FORM, "input": list(request.items), "response": made})
        previous = answer.window_of(made["previous_response_id"] or "") or ""
        window_id = answer.window_of(made["id"]) or ""
        await self._audit.keep_answer(
            audit_pb2.KeepAnswerRequest(window_id=window_id, scope=scope, previous_id=previous, kept=kept)
        )

    async def earlier(self, scope: str, response_id: Any) -> Earlier:
        """Return a response with everything before it. Refused with PREVIOUS_RESPONSE_NOT_FOUND where any of it is not there."""
        given = text("previous_response_id", response_id)
        turns = await self._found(scope, given, reason=UNKNOWN_PREVIOUS, param="previous_response_id")
        items = [item for turn in turns for item in (*turn["input"], *turn["response"]["output"])]
        return Earlier(answer.answer_id(given), items)

    async def resolved(self, scope: str, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return *items* with the item that each reference names in its place. Refused with ITEM_NOT_FOUND."""
        known: dict[str, Mapping[str, Any]] = {}
        made: list[dict[str, Any]] = []
        for number, item in enumerate(items):
            if item["type"] == "item_reference":
                item_id, place = text(f"input[{number}].id", item.get("id")), f"input[{number}]"
                if item_id not in known:
                    known |= await self._items_of(scope, item_id, place)
                if item_id not in known:
                    raise _unknown(UNKNOWN_ITEM, place, item_id)
                made.append(dict(known[item_id]))
            else:
                made.append(dict(item))
        return made

    async def one(self, scope: str, response_id: str) -> dict[str, Any]:
        """Return what is kept of a response. Refused with RESPONSE_NOT_FOUND."""
        turns = await self._found(scope, response_id, reason=UNKNOWN_RESPONSE, param="response_id", alone=True)
        return turns[-1]

    async def input_items(self, scope: str, response_id: str) -> dict[str, Any]:
        """Return the items that a response answered, the last one first. Refused with RESPONSE_NOT_FOUND."""
        kept = await self.one(scope, response_id)
        window = response_id.removeprefix("resp_")
        items = [_shown(item, f"{window}{number:04x}") for number, item in enumerate(kept["input"])][::-1]
        ends = [items[0]["id"], items[-1]["id"]] if items else [None, None]
        return {"object": "list", "data": items, "first_id": ends[0], "last_id": ends[1], "has_more": False}

    async def drop(self, scope: str, response_id: str) -> None:
        """Delete a response. Refused with RESPONSE_NOT_FOUND."""
        refused = _unknown(UNKNOWN_RESPONSE, "response_id", response_id)
        window_id = answer.window_of(response_id)
        if window_id is None:
            raise refused
        try:
            await self._audit.drop_kept_answer(audit_pb2.DropKeptAnswerRequest(window_id=window_id, scope=scope))
        except Refused as found:
            raise refused if found.reason == _NOT_KEPT else found from None

    async def _items_of(self, scope: str, item_id: str, place: str) -> dict[str, Mapping[str, Any]]:
        """Return the output of the response that an item belongs to, by id."""
        response_id = answer.response_of(item_id)
        if response_id is None:
            raise _unknown(UNKNOWN_ITEM, place, item_id)
        turns = await self._found(scope, response_id, reason=UNKNOWN_ITEM, param=place, alone=True)
        return {item["id"]: item for item in turns[-1]["response"]["output"]}

    async def _found(
        self, scope: str, response_id: str, *, reason: str, param: str, alone: bool = False
    ) -> list[dict[str, Any]]:
        """Return what is kept, the oldest first. What is not ours, not there and another caller's is refused alike."""
        window_id = answer.window_of(response_id)
        if window_id is None:
            raise _unknown(reason, param, response_id)
        request = audit_pb2.GetKeptAnswersRequest(window_id=window_id, scope=scope, alone=alone)
        try:
            return [json.loads(one.kept) for one in await self._audit.get_kept_answers(request)]
        except Refused as refused:
            raise _unknown(reason, param, response_id) if refused.reason == _NOT_KEPT else refused from None


def _shown(item: Mapping[str, Any], number: str) -> dict[str, Any]:
    """Return an item of an input as the vendor lists it: with an id, and the text of a message in parts."""
    shown = {"status": "completed", **item}
    if item["type"] == "message" and isinstance(item.get("content"), str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        more: dict[str, Any] = {"annotations": []} if kind == "output_text" else {}
        shown["content"] = [{"type": kind, "text": item["content"], **more}]
    prefix = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}[item["type"]]
    return {"id": f"{prefix}_{number}", **shown}


def _unknown(reason: str, param: str, name: str) -> Refused:
    known = answer.window_of(name) or answer.response_of(name)
    shown = f"{name!r} " if known else ""
    return not_found(reason, f"nothing is kept under the id {shown}for this caller", param=param)
