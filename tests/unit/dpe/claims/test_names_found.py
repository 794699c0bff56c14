"""What the classifier of names adds to the rule of capitals, end to end on the real models (DPE-3, DPE-18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Refused, unavailable
from interlock.dpe.claims.naming import LONG_CHARS
from interlock.dpe.document import Entity
from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3", "DPE-18")]
FACT = "The tower was sold in 2021. The buyer was not named."


class Beside:
    """The real models; what the classifier is asked is noted, and it may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[str] = []
        self.fails = fails

    def __getattr__(self, name: str) -> Any:
        return getattr(pipeline().inference, name)

    async def names(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        self.asked += texts
        if self.fails:
            raise unavailable("MODEL_OUTPUT_INVALID", "slot ner answered with something that is not a result")
        return await pipeline().inference.names(texts)


async def judged(text: str, *facts: str) -> dpe_pb2.Report:
    return await pipeline().analyse(request(text, *facts))


@pytest.mark.parametrize("name", ["Mark Price", "Rose Stone", "Bill Gates", "Green Day", "Blue Water", "Young Will"])
async def test_an_invented_name_of_ordinary_words_is_found(name):
    """At the head of a sentence a capital says nothing and the words are ordinary: only the classifier sees a name."""
    report = await judged(f"{name} bought the tower in 2021.", FACT)

    assert list(report.fabricated_entities) == [name]
    assert report.risk_level >= common_pb2.RISK_LEVEL_HIGH


async def test_the_same_name_in_the_facts_is_none():
    """Found is not accused: a name that the envelope knows has its basis."""
    report = await judged("Mark Price bought the tower in 2021.", "Mark Price bought the tower in 2021 from the city.")

    assert not report.fabricated_entities
    assert report.risk_level == common_pb2.RISK_LEVEL_LOW


async def test_names_are_reported_with_their_kind_where_the_answer_has_them():
    """Markup, hidden characters and wide letters before a name move no offset."""
    text = "**Sure**: \u200b\uff21\uff22 🚲 met. Then *Ingrid Solheim* spoke for Acme Corp in Port Elgin."
    report = await judged(text, FACT)
    found = {text[e.start : e.end]: e.label for claim in report.claims for e in claim.entities}

    assert found.items() >= {"Ingrid Solheim": "PERSON", "Port Elgin": "LOC", "Acme Corp": "ORG"}.items()


async def test_an_answer_whose_names_cannot_be_found_is_refused():
    """Without the classifier there is no report: a judge who cannot see names calls nothing sound."""
    with pytest.raises(Refused, match="MODEL_OUTPUT_INVALID"):
        await replace(pipeline(), inference=Beside(fails=True)).analyse(request("The tower is tall.", FACT))


async def test_the_classifier_reads_the_answer_and_no_fact():
    """Few texts, each once: the words of the facts are known without a model."""
    models = Beside()
    await replace(pipeline(), inference=models).analyse(request("Ada came. Bob went.\n\nCid stayed.", FACT))

    assert models.asked == ["Ada came. Bob went.", "Cid stayed."]


async def test_an_answer_of_too_many_claims_costs_no_run_of_the_classifier():
    """A-25: what is refused for its length is refused before the models look through it."""
    models = Beside()
    text = " ".join(f"Ada bought tower {n} in May." for n in range(LONG_CHARS // 20))
    with pytest.raises(Refused, match="CLAIM_LIMIT_EXCEEDED"):
        await replace(pipeline(), inference=models).analyse(request(text, FACT))

    assert not models.asked
