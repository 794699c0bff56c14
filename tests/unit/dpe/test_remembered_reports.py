"""What is remembered of texts changes no report: neither that of a part of an answer, nor that of the next turn."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.document import Fact
from interlock.dpe.request import USER, Output, PriorWindow, Request, SaidText
from interlock.dpe.text.folding import fold
from interlock.dpe.text.known_names import KnownNames
from interlock.dpe.text.lexing import lex
from interlock.dpe.text.memory.remembered import STORE
from tests.support.dpe import pipeline
from tests.support.paths import TESTS

ANSWERS = TESTS.parent / "bench" / "dpe_answers.jsonl"
TABLE = (
    "| train | leaves | price |\n|---|---|---|\n| 12 | 9:40 | $18 |\n| 14 | 11:05 | $21 |\n"
    + "The ticket office is open. " * 30
)
KEYED = json.dumps([{"year": 2022, "revenue_musd": 380}, {"year": 2023, "revenue_musd": 412}])


def _rows(*numbers: int) -> list[Request]:
    lines = ANSWERS.read_text(encoding="utf-8").splitlines()
    return [_request(json.loads(lines[number])) for number in numbers]


def _request(row: dict[str, object]) -> Request:
    source = "\n\n".join(fact["content"] for fact in row["facts"])
    return Request((Output(0, row["response"]),), (Fact("source", source, 0.5),), query=row["query"], prompt=source)


def _turns() -> list[Request]:
    """The parts of two answers; a turn with tables, records, the user's words and an earlier answer; sources that differ at their end."""
    [one, other] = _rows(0, 7)
    parts = [_of(each, each.outputs[0].text[:end]) for each in (one, other) for end in (120, 300, 10_000)]
    said = "My train is number 14 and I paid $21 for it. Is that right? " * 12
    asked = Request(
        (Output(0, "Train 14 leaves at 11:05 and costs $21. Revenue was $412 million in 2022, up from $380 million."),),
        (Fact("table", TABLE, 0.5), Fact("json", KEYED, 0.5)),
        query="When does train 14 leave?",
        prompt=said,
        prior=(PriorWindow("w1", "Train 12 leaves at 9:40. It costs $18."),),
        said=(SaidText("u1", said, USER),),
    )
    source = one.facts[0].content
    alike = [
        Request(
            (Output(0, "The final count was 42."),), (Fact("source", f"{source}\n\nThe final count was {n}.", 0.5),)
        )
        for n in (41, 42)
    ]
    return [*parts, asked, *alike]


def _of(request: Request, text: str) -> Request:
    return Request((Output(0, text),), request.facts, query=request.query, prompt=request.prompt)


async def _reports(requests: Sequence[Request]) -> list[bytes]:
    return [(await pipeline().analyse(each)).SerializeToString(deterministic=True) for each in requests]


@pytest.mark.models
@pytest.mark.req("DPE-20")
async def test_a_report_is_the_same_with_and_without_what_is_remembered():
    """Byte for byte, the first time, when everything is known, and when next to nothing may be kept."""
    requests, most = _turns(), STORE.most_bytes
    try:
        STORE.resize(0)
        anew = await _reports(requests)
        STORE.resize(2**27)
        first, again = await _reports(requests), await _reports(requests)
        STORE.resize(50_000)
        tight = await _reports(requests)
    finally:
        STORE.resize(most)

    assert anew == first == again == tight
    assert len(set(anew)) == len(requests)


@pytest.mark.models
async def test_a_source_that_comes_again_is_not_read_again(monkeypatch):
    """The next part of an answer reads its own words alone."""
    monkeypatch.setattr(STORE, "most_bytes", 2**27)
    [request] = _rows(3)
    await pipeline().analyse(_of(request, request.outputs[0].text[:150]))
    read: list[str] = []
    keep = type(STORE)._keep
    monkeypatch.setattr(type(STORE), "_keep", lambda store, *args: read.append("") or keep(store, *args))
    await pipeline().analyse(_of(request, request.outputs[0].text[:150]))

    assert read == []


@given(st.lists(st.text(alphabet="AbcU.S-' ,and&(é1\n", max_size=60), max_size=4))
def test_names_of_texts_read_apart_are_those_of_all_together(texts):
    """The known names of several texts are those of each, together."""
    tokens = [lex(fold(text)) for text in texts]

    assert KnownNames.joined([KnownNames.of((each,)) for each in tokens]) == KnownNames.of(tokens)
