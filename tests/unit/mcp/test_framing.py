"""Lines and events of strangers: taken apart the same however they arrive, bounded (KRN-10)."""

from __future__ import annotations

import asyncio
import itertools

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.mcp.events import events
from interlock.mcp.lines import lines


async def read_lines(chunks: list[bytes], most: int = 10) -> list[bytes | None]:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return [line async for line in lines(reader, most=most)]


async def read_events(chunks: list[bytes], most: int = 1000) -> list[str]:
    async def stream():
        for chunk in chunks:
            yield chunk

    return [one.text async for one in events(stream(), most=most)]


@pytest.mark.req("KRN-10")
async def test_a_line_without_an_end_costs_no_memory():
    """What is too long is told once and skipped to its end; what is around it is read."""
    assert await read_lines([b"ab\n\n", b"c" * 11, b"d" * 500, b"\nef\n" + b"g" * 11 + b"\nh\n"]) == [
        b"ab",
        None,
        b"ef",
        None,
        b"h",
    ]


@pytest.mark.req("KRN-10")
@given(cuts=st.lists(st.integers(0, 60), max_size=8))
def test_events_are_the_same_however_they_are_cut(cuts):
    """All three ends of lines, data of several lines, comments and ids."""
    data = b": hi\r\n\r\nevent: message\r\nid: 7\r\ndata: a\r\ndata: b\r\n\r\ndata:c\n\ndata: d\r\revent: x\n\n"
    places = [0, *sorted(cuts), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(places)]
    assert asyncio.run(read_events(chunks)) == ["", "a\nb", "c", "d", ""]


@pytest.mark.req("KRN-10", "KRN-13")
async def test_an_event_above_the_limit_is_refused():
    """However it comes: in one line, or in many."""
    for chunks in ([b"data: " + b"x" * 5000], [b"data: " + b"x" * 100 + b"\n"] * 50):
        with pytest.raises(Refused) as refused:
            await read_events(chunks)
        assert refused.value.reason == "MCP_MESSAGE_TOO_LARGE"


@pytest.mark.req("KRN-10")
@pytest.mark.parametrize(
    "hidden",
    ["\ufeffdata: {}\n\n", "x: a\u2028data: {}\n\n", ": a\x85data: {}\n\n", "id: a\x0bdata: {}\n\n", "data : {}\n\n"],
)
async def test_no_event_is_hidden_from_the_proxy_and_seen_by_the_agent(hidden):
    """A mark at the start of the stream, and characters that other readers take for the end of a line."""

    async def stream():
        yield hidden.encode()

    found = [one async for one in events(stream(), most=1000)]
    passed = b"".join(one.written() for one in found if not one.text).decode().removeprefix("\ufeff")
    lines_there = [line async for line in httpx.Response(200, content=passed.encode()).aiter_lines()]
    assert not [line for line in lines_there if line.startswith("data")]
