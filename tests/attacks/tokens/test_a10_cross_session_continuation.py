"""A-10: the continuation id of one session in another."""

from __future__ import annotations

import itertools

import pytest

from tests.support.sidecar.sidecar import token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("TOK-3")

SESSIONS = 4
UNKNOWN = "crp_cont_" + "7" * 32


def shown(response) -> tuple:
    """What a caller sees of a refusal, without what differs between any two answers."""
    body = response.json()
    varying = {"request_id", "trace_id", "timestamp", "session_id"}
    headers = {k for k in response.headers if k.startswith("crp-")}
    return (
        response.status_code,
        body["reason"],
        body["message"] if "message" in body else "",
        sorted(set(body) - varying),
        sorted(headers),
    )


async def test_a10_a_pointer_into_another_session_is_the_404_of_an_unknown_one(sidecar, provider):
    """Every pair of four sessions of one key, swapped: 404, in the very words that an id nobody ever had gets."""
    firsts = [await sidecar.chat() for _ in range(SESSIONS)]
    tokens = [token_of(first) for first in firsts]
    pointers = [first.headers["crp-context-continuation-id"] for first in firsts]
    unknown = await sidecar.chat(token=tokens[0], headers={"crp-context-continuation-id": UNKNOWN})
    answers = [
        await sidecar.chat(token=tokens[mine], headers={"crp-context-continuation-id": pointers[theirs]})
        for mine, theirs in itertools.permutations(range(SESSIONS), 2)
    ]

    assert unknown.status_code == 404
    assert {str(shown(answer)) for answer in answers} == {str(shown(unknown))}
    assert len(provider.received) == SESSIONS


async def test_a10_nor_does_it_open_a_session_without_a_token(sidecar, provider):
    """A pointer alone, and one of another key's session, open nothing."""
    first = await sidecar.chat(headers={"authorization": "Bearer one"})
    pointer = {"crp-context-continuation-id": first.headers["crp-context-continuation-id"]}
    mine = token_of(await sidecar.chat(headers={"authorization": "Bearer two"}))
    alone = await sidecar.chat(headers={"authorization": "Bearer one", **pointer})
    other = await sidecar.chat(token=mine, headers={"authorization": "Bearer two", **pointer})

    assert alone.status_code == 401
    assert other.status_code == 404
    assert len(provider.received) == 2


async def test_a10_its_own_pointer_is_good(sidecar):
    """The same header with the session's own id goes on: the refusals above are not of the header."""
    first = await sidecar.chat()
    pointer = {"crp-context-continuation-id": first.headers["crp-context-continuation-id"]}

    assert (await sidecar.chat(token=token_of(first), headers=pointer)).status_code == 200
