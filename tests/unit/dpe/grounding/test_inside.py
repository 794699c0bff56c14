"""Contradictions within an answer: the model is not asked to doubt what one source says itself (SPEC-005 §5.4)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.dpe.document import Fact
from interlock.dpe.grounding.beside.inside import contradicted_inside, doubtful
from interlock.dpe.grounding.envelope import Envelope, cut
from interlock.dpe.inference.port import Inference
from tests.support.dpe import claim, pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3", "DPE-6")]

HIVES = "The northern hives were treated in March. The northern hives lost a third of their bees."
SOLD = "The northern hives were sold to a neighbour."


def envelope(*texts: str) -> Envelope:
    facts = tuple(Fact(f"f{n}", text, 0.5) for n, text in enumerate(texts, 1))
    units = cut(
        facts, limit=200, count=lambda some: [len(each.split()) for each in some], split=pipeline().language.split
    )
    return Envelope(units, np.zeros((0, 1)), np.zeros((0, 1)))


def claims(*texts: str):
    return [claim(text, number) for number, text in enumerate(texts, 1)]


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (("The northern hives were treated in March.", "The northern hives lost a third of their bees."), False),
        (("The northern hives were treated in March.", SOLD), True),
        (("The northern hives were treated in March.", "The northern hives lost no bees."), True),
        (("The northern hives were treated in April.", "The northern hives lost half of their bees."), True),
    ],
)
def test_the_model_is_asked_but_about_two_sentences_of_one_source(answer, asked):
    """Of another source, or not copied: then it may be the answer that contradicts itself."""
    assert doubtful(claims(*answer), [(0, 1)], envelope(HIVES, SOLD)) == ([(0, 1)] if asked else [])


class Asked:
    """The models, and the pairs that the one for NLI is given."""

    def __init__(self, models: Inference) -> None:
        self._models, self.pairs = models, []

    def __getattr__(self, name: str):
        return getattr(self._models, name)

    async def nli(self, pairs):
        self.pairs += pairs
        return await self._models.nli(pairs)


async def test_rules_compare_what_one_source_says_twice():
    """Two figures for one fee are a contradiction of the answer that repeats both, and no model is asked."""
    source = "The fee for the licence is 40 euros. The fee for the licence is 70 euros."
    answer = claims("The fee for the licence is 40 euros.", "The fee for the licence is 70 euros.")
    models = Asked(pipeline().inference)

    found = await contradicted_inside(answer, envelope(source), models, pipeline().language)

    assert [(each.claim_id, each.other_claim_id, each.method) for each in found] == [("c1", "c2", "numbers")]
    assert models.pairs == []


async def test_an_answer_that_contradicts_itself_in_its_own_words_is_found():
    """Through the whole pipeline, with sources that say one of both."""
    told = "The bridge is open to lorries. The bridge is closed to lorries."

    report = await pipeline().analyse(request(told, "The bridge is open to lorries. It was painted in May."))

    assert report.contradictions
