"""One suite for the port to the models, over both runtimes: in process, and a real tritonserver (DPE-18)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.local import LocalInference
from interlock.dpe.inference.models import manifest
from interlock.dpe.inference.port import CONTRADICTION, ENTAILMENT, Inference
from tests.support.servers import triton

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-18"), pytest.mark.asyncio(loop_scope="module")]
FACT = "Revenue increased by 15% in Q3 2025."
NAMED = "Ingrid Solheim of Kestrel Dynamics met Mark Price in Port Elgin, and nobody else."


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["embedded", "triton"])
async def engine(request) -> AsyncIterator[Inference]:
    """Each runtime in turn."""
    if request.param == "embedded":
        opened: Inference = LocalInference(nli=manifest("nli"), embed=manifest("embed"), ner=manifest("ner"), threads=2)
    else:
        opened = triton.client(triton.address())
    yield opened
    await asyncio.to_thread(opened.close)


async def test_vectors_have_length_one_and_keep_the_order(engine):
    """Rows are unit vectors of 384 numbers, in the order asked, doubles included."""
    rows = await engine.embed([FACT, "Bread is cheap.", FACT, ""])

    assert rows.shape == (4, 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (rows[0] == rows[2]).all()
    assert rows[0] @ rows[1] < 0.5


async def test_a_changed_number_is_a_contradiction(engine):
    """Each row sums to 1.0 and tells the cases apart."""
    rows = await engine.nli([(FACT, FACT), (FACT, "Revenue increased by 25% in Q3 2025.")])

    assert rows.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert rows[0][ENTAILMENT] > 0.7
    assert rows[1][CONTRADICTION] > 0.7


async def test_a_score_depends_on_its_own_text_alone(engine):
    """Neighbours in a call, their order and their lengths change no bit."""
    pairs = [(FACT, "Revenue rose."), ("Bread is cheap. " * 9, "Milk is white."), (FACT, "Costs fell by 3%.")]
    alone = [(await engine.nli([pair]))[0] for pair in pairs]

    assert (await engine.nli(pairs) == np.stack(alone)).all()
    assert (await engine.nli(pairs[::-1]) == np.stack(alone[::-1])).all()


async def test_more_rows_than_a_request_takes_come_back_in_order(engine):
    """A question of many pairs is one answer, each score at its own pair's place."""
    pairs = [(FACT, f"Revenue rose by {n}%.{' Indeed so.' * (n % 4)}") for n in range(150)]
    rows = await engine.nli(pairs)
    some = [0, 1, 63, 64, 65, 149]

    assert rows.shape == (150, 3)
    assert (rows[some] == await engine.nli([pairs[n] for n in some])).all()


async def test_both_runtimes_agree_to_the_last_bit(engine):
    """DPE-18: whichever runtime scores it, a text has the same vector, the same probabilities and the same names."""
    texts = ["one text", "another, longer text of several words", "x", "Long. " * 700, "Straße 東京 🚲"]
    pairs = [(premise, text[:200]) for premise in (FACT, "The tower is tall.") for text in texts]
    twin = LocalInference(nli=manifest("nli"), embed=manifest("embed"), ner=manifest("ner"), threads=1)

    assert (await engine.embed(texts) == await twin.embed(texts)).all()
    assert (await engine.nli(pairs) == await twin.nli(pairs)).all()
    assert await engine.names([NAMED, *texts]) == await twin.names([NAMED, *texts])
    assert engine.tokens(texts) == twin.tokens(texts)
    assert engine.max_pair_tokens == twin.max_pair_tokens
    twin.close()


async def test_a_long_text_is_read_to_its_end(engine):
    """Words far beyond the model's length move the vector."""
    long = "The tower is tall. " * 150
    one, other = await engine.embed([long, long + "Bread is cheap. " * 60])

    assert one @ other < 0.99


async def test_a_pair_that_does_not_fit_is_refused(engine):
    """Never cut to fit."""
    with pytest.raises(Refused) as refused:
        await engine.nli([(FACT, FACT), ("word " * 300, "claim")])

    assert (refused.value.kind, refused.value.reason) == (Kind.EXHAUSTED, "CLAIM_TOO_LONG")


async def test_names_have_their_kinds_and_places(engine):
    """Persons, organisations and places, where the text has them, in the order of the texts, doubles included."""
    found, none, again = await engine.names([NAMED, "nobody came.", NAMED])

    assert [(name.text, name.label) for name in found] == [
        ("Ingrid Solheim", "PERSON"), ("Kestrel Dynamics", "ORG"), ("Mark Price", "PERSON"), ("Port Elgin", "LOC"),
    ]  # fmt: skip
    assert all(NAMED[name.start : name.end] == name.text for name in found)
    assert (none, again) == ((), found)


async def test_the_case_of_words_is_seen(engine):
    """The encoder reads lower case: only the case that goes in beside it tells Mark Price from a price to mark."""
    upper, lower = await engine.names(["Mark Price bought the tower in 2021.", "mark price bought the tower in 2021."])

    assert [name.text for name in upper] == ["Mark Price"]
    assert lower == ()


async def test_a_long_text_is_looked_through_to_its_end(engine):
    """Windows overlap: a name counts once wherever it stands, with its place in the whole text, between emoji, too."""
    filling = "The tower is tall 🚲 and the bridge is long. "
    for before in (0, 7, 8, 9, 10, 40):
        text = filling * before + "Ingrid Solheim built it. " + filling * 12
        (found,) = await engine.names([text])
        assert [text[name.start : name.end] for name in found] == ["Ingrid Solheim"]
        assert found[0].start == len(filling) * before


async def test_names_depend_on_their_own_text_alone(engine):
    """Neighbours in a call and their order change nothing."""
    texts = [NAMED, "Mark Price. " * 90, "", "x", "Straße in 東京 🚲", "Kestrel Dynamics fell by 3%."]
    alone = [(await engine.names([text]))[0] for text in texts]

    assert await engine.names(texts) == alone
    assert await engine.names(texts[::-1]) == alone[::-1]


async def test_nothing_asked_is_nothing_answered(engine):
    """Empty questions have empty answers of the right width."""
    assert await engine.names([]) == []
    assert (await engine.embed([])).shape == (0, 384)
    assert (await engine.nli([])).shape == (0, 3)


async def test_the_models_are_the_pinned_ones(engine):
    """Reports name each slot with their hashes and where they run, and both can be used now."""
    await engine.check()

    assert {(m.slot, m.hash) for m in engine.models()} == {(s, manifest(s).hash) for s in ("nli", "embed", "ner")}
    where = "embedded" if isinstance(engine, LocalInference) else "triton"
    assert {m.runtime for m in engine.models()} == {where}


async def test_questions_at_once_are_answered_each_for_itself(engine):
    """Analyses side by side share the models and mix up nothing."""
    asked = [[(FACT, f"Question {n} has part {part}.") for part in range(n + 1)] for n in range(12)]
    answers = await asyncio.gather(*(engine.nli(pairs) for pairs in asked))

    assert [len(rows) for rows in answers] == [len(pairs) for pairs in asked]
    assert (answers[7] == await engine.nli(asked[7])).all()


async def test_the_event_loop_goes_on_while_models_run(engine):
    """A task that only yields is not held up until the end."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    ticking = asyncio.create_task(tick())
    await engine.nli([(FACT, f"Sentence number {n} is here.") for n in range(40)])
    ticking.cancel()

    assert turns > 3, "held up, the loop would have turned once or not at all"


async def test_work_ends_with_its_caller(engine):
    """A cancelled question leaves the models free: what follows is answered."""
    asking = asyncio.create_task(engine.nli([(FACT, f"Cancelled sentence number {n}.") for n in range(3000)]))
    await asyncio.sleep(0.2)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    async with asyncio.timeout(10):
        await engine.nli([(FACT, FACT)])
