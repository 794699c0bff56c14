"""Lines of a pipe with a bound on their length: what a stranger writes without an end costs no memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

CHUNK = 65_536


async def lines(reader: asyncio.StreamReader, *, most: int) -> AsyncIterator[bytes | None]:
    """Yield each line that is not empty; ``None`` for one above *most* bytes, the rest of which is skipped."""
    buffer, skips = bytearray(), False
    while chunk := await reader.read(CHUNK):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            line = bytes(buffer) + part
            buffer.clear()
            if skips:
                skips = False
            elif len(line) > most:
                yield None
            elif line.strip():
                yield line
        if not skips:
            buffer += rest
        if len(buffer) > most:
            buffer.clear()
            skips = True
            yield None
