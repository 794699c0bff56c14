"""The score of a summary (SPEC-004 §12.3): what its claims are worth, and what makes it unusable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.errors import Refused
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Distortion, NliScores, Sentence
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import MAX_FACT_CHARS
from interlock.dpe.grounding.fidelity import Flaws
from interlock.dpe.summary import FLAWED_AT_MOST, USED_FROM, check, source_facts
from tests.support.dpe import claim

HOLDS, PARTLY, FOREIGN = NliScores(0.9, 0.1, 0.0), NliScores(0.4, 0.6, 0.0), NliScores(0.0, 1.0, 0.0)
DENIED = NliScores(0.6, 0.0, 0.9)
NO_FLAWS = Flaws({}, {})


def checked(
    *scores: NliScores,
    flaws: Flaws = NO_FLAWS,
    inside: tuple[Contradiction, ...] = (),
    source: str = "",
    **reading: int,
):
    """Return the verdict on a summary with one claim for each of *scores*."""
    claims = [
        replace(claim(f"Claim {number}.", number), sentence_index=number - 1) for number, _ in enumerate(scores, 1)
    ]
    made = ChoiceReading(
        0,
        claims=claims,
        checked=claims,
        sentences=[Sentence(n, c.text, 0, 1, 0) for n, c in enumerate(claims)],
        empty=False,
        **reading,
    )
    evidence = {
        c.claim_id: ClaimEvidence("s1", 0.0, source, score, source, score, plain_scores=score)
        for c, score in zip(claims, scores, strict=True)
    }
    return check([made], evidence, flaws, [inside], method="nli")


@pytest.mark.req("DAG-7")
def test_claims_that_follow_make_a_summary_faithful():
    """All of them: 1.0, and nothing is named."""
    found = checked(HOLDS, HOLDS, HOLDS)

    assert (found.score, found.claims, found.flawed) == (1.0, 3, ())


@pytest.mark.req("DAG-7")
def test_what_follows_in_part_or_not_lowers_the_mean():
    """A quarter, and nothing."""
    assert checked(HOLDS, HOLDS, HOLDS, PARTLY).score == pytest.approx(3.25 / 4)
    assert checked(HOLDS, HOLDS, HOLDS, FOREIGN).score == pytest.approx(3 / 4)


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    "flaws", [Flaws({"c1": ("Oslo",)}, {}), Flaws({}, {"c1": (Distortion("NUMBER_CHANGED", "4.2", "4.8", "s1"),)})]
)
def test_one_flaw_among_many_is_enough(flaws):
    """The mean over thirty claims hides it; the bound does not."""
    found = checked(*[HOLDS] * 30, flaws=flaws)

    assert found.score <= FLAWED_AT_MOST < USED_FROM
    assert found.flawed == ("Claim 1.",)


@pytest.mark.req("DAG-7")
def test_a_denied_claim_is_a_flaw():
    """The source says the contrary."""
    found = checked(*[HOLDS] * 30, DENIED)

    assert (found.score < USED_FROM, found.flawed) == (True, ("Claim 31.",))


@pytest.mark.req("DAG-7")
def test_a_summary_that_contradicts_itself_is_flawed():
    """Both claims are named; a minor inconsistency is none."""
    grave = Contradiction("c1", "c2", "Claim 2.", 0.9, "HIGH", "nli", "logical")

    assert checked(*[HOLDS] * 30, inside=(grave,)).flawed == ("Claim 1.", "Claim 2.")
    assert checked(*[HOLDS] * 30, inside=(replace(grave, severity="LOW"),)).score == 1.0


@pytest.mark.req("DAG-7")
def test_nothing_to_score_scores_nothing():
    """No claim, hidden characters, a word to the judge."""
    assert checked().score == 0.0
    assert checked(HOLDS, hidden=1).score == 0.0
    assert checked(HOLDS, addressed=1).score == 0.0


@pytest.mark.req("DAG-7")
def test_the_worst_reading_counts():
    """A masked summary is what it is without its mask."""
    made = [
        ChoiceReading(0, claims=[c], checked=[c], sentences=[Sentence(1, c.text, 0, 1, 0)] * 2)
        for c in (claim("A.", 1), claim("B.", 2))
    ]
    evidence = {f"c{n}": ClaimEvidence("s1", 0.0, "", score, "", score) for n, score in ((1, HOLDS), (2, FOREIGN))}
    for reading in made:
        reading.sentences = [Sentence(n, "x", 0, 1, 0) for n in range(3)]

    assert check(made, evidence, NO_FLAWS, [(), ()], method="nli").score == 0.0


@pytest.mark.req("DAG-7")
def test_a_long_source_is_cut_between_words_and_keeps_them_all():
    """Into facts that are no longer than a fact may be."""
    words = [f"word{n}" for n in range(12_000)]
    facts = source_facts(" ".join(words))

    assert len(facts) > 1
    assert all(len(fact.content) <= MAX_FACT_CHARS for fact in facts)
    assert " ".join(fact.content for fact in facts).split() == words
    assert len(source_facts("x" * (MAX_FACT_CHARS + 1))) == 2


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize("source", ["", " \n\t"])
def test_a_source_that_says_nothing_is_refused(source):
    """By name: there is nothing to be faithful to."""
    with pytest.raises(Refused) as caught:
        source_facts(source)

    assert caught.value.reason == "SUMMARY_SOURCE_EMPTY"
