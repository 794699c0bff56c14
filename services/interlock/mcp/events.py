"""Server-sent events with a bound on their size, taken apart and written anew.

What goes on besides the data is what the format knows, in characters that no reader takes for the end of a line: a server could
hide an event in the rest, which would reach the agent and not the proxy.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from interlock.mcp.protocol import too_large

_KNOWN = frozenset({"event", "id", "retry"})


@dataclass
class StreamEvent:
    """One event: its lines but for the data, and the data."""

    lines: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The data as one text."""
        return "\n".join(self.data)

    @property
    def has_id(self) -> bool:
        """Whether a reader can go on behind it in another stream."""
        return any(line.startswith("id") for line in self.lines)

    def written(self, data: str | None = None) -> bytes:
        """Return the event for a stream, with other *data* where it is given."""
        parts = [data] if data is not None else self.data
        return "".join(f"{line}\n" for line in [*self.lines, *(f"data: {one}" for one in parts), ""]).encode()


async def events(chunks: AsyncIterator[bytes], *, most: int) -> AsyncIterator[StreamEvent]:
    """Yield the events of a stream. Refused with MCP_MESSAGE_TOO_LARGE above *most* characters."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    event, rest, size = StreamEvent(), "", 0
    async for chunk in chunks:
        rest += decoder.decode(chunk)
        if size + len(rest) > most + 1_024:
            raise too_large(most)
        # A carriage return at the end may be half of a line's end.
        held = "\r" if rest.endswith("\r") else ""
        *whole, rest = rest.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rest += held
        for line in whole:
            size += len(line)
            if line:
                _add(event, line)
                continue
            if event.lines or event.data:
                yield event
            event, size = StreamEvent(), 0


def _add(event: StreamEvent, line: str) -> None:
    name, _, value = line.partition(":")
    if name == "data":
        event.data.append(value.removeprefix(" "))
    elif name in _KNOWN and value.isprintable():
        event.lines.append(line)
    elif not name:
        event.lines.append(":")
