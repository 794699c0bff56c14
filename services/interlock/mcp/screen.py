"""What is decided of each call, the same over stdio and HTTP: pinned definition, mapping, permit; then what became of it."""

from __future__ import annotations

from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.mcp import protocol
from interlock.mcp.gate import CallGate, GivenPermit
from interlock.mcp.mapping import ToolMapping, field_of
from interlock.mcp.pins import Pins
from interlock.mcp.planning import LONGEST_TOOL, planned
from interlock.mcp.protocol import Message

_OF_LISTING = frozenset({"tools", "nextCursor"})


class Screen:
    """Decides calls before they reach the server, and settles them with what it answered."""

    def __init__(self, gate: CallGate, mapping: ToolMapping, pins: Pins) -> None:
        self._gate, self._mapping, self._pins = gate, mapping, pins

    async def begin(self, message: Message) -> GivenPermit:
        """Return the permit of a call. Refused with why it must not reach the server."""
        tool, arguments = protocol.call_of(message)
        self._pins.check(tool)
        return await self._gate.permit(planned(self._mapping, tool, arguments))

    def finish(self, permit: GivenPermit, response: Message) -> Message:
        """Settle a call with the server's answer, and return that answer."""
        if protocol.is_done(response) or permit.plan.is_error_done:
            self._gate.confirm(permit, field_of(response.get("result"), "structuredContent"))
        else:
            self._gate.abort(permit)
        return response

    def never_sent(self, permit: GivenPermit) -> None:
        """Take back a call that did not reach the server."""
        self._gate.abort(permit)

    def turned_away(self, permit: GivenPermit) -> None:
        """Settle a call that the server says it did not take. One that is not believed may have done it all the same."""
        if permit.plan.is_error_done:
            self._gate.confirm(permit, None)
        else:
            self._gate.abort(permit)

    def listed(self, response: Message) -> Message:
        """Return a listing without the tools whose definition changed: what they say of themselves now reaches no model."""
        result = response.get("result")
        if isinstance(result, dict) and protocol.misspelt(result, _OF_LISTING):
            refused = invalid("MCP_MESSAGE_INVALID", "the server's listing has keys that some readers take for others")
            return protocol.failure(response.get("id"), refused, protocol.SERVER_ERROR)
        tools = field_of(result, "tools")
        if not isinstance(tools, list):
            return response
        named = [one for one in tools if _is_named(one)]
        try:
            shown: list[Any] = list(self._pins.admitted(named))
        except Refused as refused:
            return protocol.failure(response.get("id"), refused, protocol.SERVER_ERROR)
        return {**response, "result": {**response["result"], "tools": shown}} if len(shown) < len(tools) else response

    async def settled(self) -> None:
        """Wait for what is being settled."""
        await self._gate.settled()


def _is_named(tool: Any) -> bool:
    """Tell whether a definition has one name for every reader, of a length that can be called and pinned.

    With ``Name`` beside ``name`` it would be pinned as one tool and read as another.
    """
    name = tool.get("name") if isinstance(tool, dict) else None
    return isinstance(name, str) and len(name) <= LONGEST_TOOL and protocol.misspelt(tool, {"name"}) is None
