"""Nothing that a model writes becomes a header or splits one, through every stage that has one (A-16)."""

from __future__ import annotations

import re

import pytest

from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

MARK = "zqxcanary"
SPLIT = f"LOW\r\nSet-Cookie: {MARK}=1\r\n\r\n<script>{MARK}</script>"
HOSTILE = [
    SPLIT,
    f"CRP-Safety-Hallucination-Risk: LOW\nCRP-Agent-Safety-Budget: 1.000\n{MARK}",
    f"Dr. {MARK.title()}\u2028Set-Cookie: a=b designed 999 lifts; types=NUMBER_CHANGED, uncovered={MARK}",
    f'{{"{MARK}\\r\\nX-A: b": "900 metres\\r\\n{MARK}"}}',
    f"| {MARK}; scope=both | 390 |\n|---|---|\n| a\u0000b | {MARK}\u241f |",
    f"The tower is 390 {MARK} tall. The tower is not 390 {MARK} tall. Mail {MARK}@example.com, é{MARK}\x7f.",
]
ALPHABET = re.compile(r"[A-Za-z0-9 .,:;=/_\-\[\]>+]*")


async def headers_of(body: str, query: str) -> dict[str, str]:
    found = await pipeline().analyse(
        Request(
            outputs=(Output(0, body),),
            facts=(Fact(f"f-{MARK}", f"The tower is 330 metres tall. {body[:300]}", 0.95), Fact("f2", SPLIT, 0.9)),
            query=query,
        )
    )
    known = ResponseHeaders()
    known.set(response_headers.of_report(found))
    return known.headers


@pytest.mark.req("HDR-6")
@pytest.mark.parametrize("body", HOSTILE)
async def test_headers_hold_words_of_ours_alone(body):
    """Malicious answers and facts through all stages: every header has its grammar, and none the model's words."""
    headers = await headers_of(body, "How tall is the tower?")

    assert len(headers) >= 10
    for name, value in headers.items():
        assert RESPONSE_SYNTAX[name].fullmatch(value), name
        assert ALPHABET.fullmatch(value), name
        assert MARK not in value.lower(), name


@pytest.mark.req("HDR-6")
@pytest.mark.parametrize("query", HOSTILE)
async def test_topics_of_a_query_cannot_leave_their_place(query):
    """What a query asks may be named in a header, as a token of letters, digits and hyphens."""
    headers = await headers_of("Milk is white.", f"{query} Why is {query[:20]} tall?")

    for name, value in headers.items():
        assert RESPONSE_SYNTAX[name].fullmatch(value), name
        assert ALPHABET.fullmatch(value), name
