"""Turned wording: the same said in another way is no flip, no invention and no contradiction (SPEC-005 §5.2 to §5.4)."""

from dataclasses import replace

import pytest

from interlock.dpe.comparison.contradiction import contradictions
from interlock.dpe.comparison.direct import cues
from interlock.dpe.comparison.order import told_from_the_other_end
from interlock.dpe.comparison.value_conflicts import EnvelopeValues, conflicts, extract, frame, untraced
from interlock.dpe.document import Claim, ClaimType
from interlock.dpe.grounding.fabrication import EnvelopeIndex, find


def _claim(text, name="c0", sentence=0):
    return Claim(name, text, sentence, 0, 0, 1, ClaimType.FACTUAL, 0.5, ())


def _invented(text, source):
    return find([_claim(text)], EnvelopeIndex.of([source], "")).get("c0", ())


def _kinds(claim, source):
    framed, fact = frame(claim), frame(source)
    return {cue.type for sentence in framed.sentences for cue in cues(sentence, framed, fact)}


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "wrong", "source"),
    [
        ("The gate opens at seven.", "The gate opens at nine.", "The gate opens at 19:00."),
        ("It sailed shortly after four.", "It sailed shortly after six.", "It sailed at 16:08."),
        ("The pass lasts twelve months.", "The pass lasts eleven months.", "The pass is valid for a year."),
        ("Boats: 1915", "Boats: 1975", "The harbour counts 1,915 boats."),
        (
            "It is capped at two fifths of the seats.",
            "It is capped at three quarters of the seats.",
            "At most 40% of seats.",
        ),
        ("It shrank by a third.", "It shrank by a quarter.", "It shrank by 33%."),
        ("For 40 × £3 you get a card.", "For 70 × £3 you get a card.", "40 stamps of £3 give a card."),
    ],
)
def test_another_notation_is_not_invented(claim, wrong, source):
    """The same sentence with another figure is."""
    assert _invented(claim, source) == ()
    assert _invented(wrong, source) != ()


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "share"),
    [("one boat in eight leaks", 1 / 8), ("seven in ten leak", 0.7), ("it fell by a quarter last year", 0.25)],
)
def test_a_share_in_words_is_one_value(text, share):
    """With the thing between its parts, or after *by*."""
    values = [value for value in extract(text) if value.fraction]
    assert [value.amount for value in values] == [pytest.approx(share)]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("text", ["one goal in 10 minutes", "three in 2019", "put back by a quarter of an hour"])
def test_a_place_or_a_time_is_no_share(text):
    """What a number counts in a time stays a count."""
    assert not any(value.fraction for value in extract(text))


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Rust is excluded from the warranty.", "The warranty does not cover rust."),
        ("Failed deliveries: 90", "90 deliveries failed; no parcel was lost."),
        ("You need a score of 60 or higher.", "You need a score of at least 60."),
    ],
)
def test_the_same_in_other_words_is_no_flip(claim, source):
    """Words that say *not* themselves, a failure, and the other way to say *at least*."""
    assert not _kinds(claim, source) & {"NEGATION_FLIP", "CONTEXT_STRIPPED"}


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("claim", "flips"),
    [("It went up by 25% at the dam.", True), ("It went down by 25% at the dam.", False)],
)
def test_a_figure_moves_in_its_own_direction(claim, flips):
    """What fell by a quarter did not go up by 25%, whatever else rose."""
    source = "Use fell by a quarter at the dam, but it rose slightly at the weir."
    assert any(each.type == "NEGATION_FLIP" for each in conflicts(claim, source)) is flips


@pytest.mark.req("DPE-4")
def test_parts_of_one_sentence_both_hold():
    """The model and two figures do not make them contradict each other; between sentences they do."""
    one, other = _claim("The crew won 24 races.", "c0"), _claim("The crew won 6 races.", "c1")
    assert contradictions([one, other], [(0, 1)], [0.9], one_answer=True) == []
    assert contradictions([one, replace(other, sentence_index=1)], [(0, 1)], [0.9], one_answer=True)
    assert contradictions([one, other], [(0, 1)], [0.9])


@pytest.mark.req("ATT-5")
def test_two_of_them_count_the_list():
    """A number that counts what follows replaces no figure of a source."""
    assert conflicts("Two of them leave the harbour at night.", "One boat leaves the harbour at night.") == ()


@pytest.mark.req("ATT-5")
def test_what_is_taken_off_has_no_sign():
    """A refund of 620 is the -620 of a record."""
    source = "input tax: -620"
    assert conflicts("Take off the 620 of input tax.", source) == ()


@pytest.mark.req("ATT-5")
def test_a_bound_in_another_notation_is_traced():
    """Three fifths is a bound of 60%, and four fifths is not."""
    envelope = EnvelopeValues.of(["no more than 60%"])
    assert untraced("three fifths of the plants", envelope) == ()
    assert untraced("four fifths of the plants", envelope) != ()


@pytest.mark.req("DPE-4")
@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("Let it cool for 15 minutes before turning it out.", "Turn it out after 15 minutes of cooling.", True),
        ("Check the seal after you have changed the filter.", "Change the filter before you check the seal.", True),
        ("Take the tablet before meals.", "Take the tablet after meals.", False),
        ("Pay before the work starts.", "Pay after the work has started.", False),
    ],
)
def test_one_order_may_be_told_from_both_ends(one, other, told):
    """Before the one is after the other; the same things on the same sides are a flip."""
    assert told_from_the_other_end(one, other) == told == told_from_the_other_end(other, one)


@pytest.mark.req("DPE-4")
def test_an_order_told_from_the_other_end_is_no_flip():
    """The word alone says nothing."""
    source = "Let the cake cool for 15 minutes before turning it out."

    assert "NEGATION_FLIP" not in _kinds("Turn the cake out after 15 minutes of letting it cool.", source)
    assert "NEGATION_FLIP" in _kinds("Let the cake cool for 15 minutes after turning it out.", source)


CREW = "If a crew leaves the island during the season, the cook may stay aboard, but"


@pytest.mark.req("DPE-3")
def test_a_figure_that_counts_nothing_is_compared_with_nothing():
    """*Up to three* alone may count anything; a sentence that names what it counts is compared."""
    assert conflicts("Up to three.", "estimated_days: 4") == ()
    assert conflicts("It is estimated at three days.", "It is estimated at four days.") != ()


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("claim", "source", "flips"),
    [
        ("Iodine does, owing to the risk of burns.", "Walkers with iodine are excluded because of the risk of burns.", False),
        ("The boat stops being there for her on the day you leave.", f"{CREW} boat transport ends on the day they leave.", False),
        ("The boat stops being there for her on the day you leave.", f"{CREW} boat transport goes on after the day they leave.", True),
        ("After the tenth week Orbex is not allowed at all.", "Orbex must not be taken after the tenth week.", False),
    ],
)  # fmt: skip
def test_a_denial_in_a_weak_word_is_a_denial(claim, source, flips):
    """*Does* stands for another verb, what ends stops, and what is not allowed at all must not be done."""
    assert ("NEGATION_FLIP" in _kinds(claim, source)) is flips
