"""How far a denial reaches: what is told without a *not*, or of another clause, is no flip; its bent twin is one (SPEC-005 §5.3)."""

import pytest

from interlock.dpe.comparison.cues import CONTEXT_STRIPPED, NEGATION_FLIP
from interlock.dpe.comparison.direct import cues
from interlock.dpe.comparison.order import told_from_the_other_end
from interlock.dpe.values.frames import frame

pytestmark = pytest.mark.req("DPE-3")


def _kinds(claim, source):
    framed, fact = frame(claim), frame(source)
    return {cue.type for sentence in framed.sentences for cue in cues(sentence, framed, fact)}


_ALIKE = [
    # not until an event, and from it on
    ("Lessons begin two weeks after the fee is received.", "Lessons don't begin until two weeks after the fee is received.", "Lessons don't begin after the fee is received."),
    ("The rink opens once the ice has been tested.", "The rink won't open until the ice has been tested.", "The rink won't open once the ice has been tested."),
    ("The museum lends the vase once the crack has been filled.", "Until the crack has been filled, the museum does not lend the vase.", "Once the crack has been filled, the museum does not lend the vase."),
    ("Late mail is not collected until the next Monday.", "Late mail is collected on the next Monday.", "Late mail is collected until the next Monday."),
    ("The late shift is not paid until 10 pm.", "The late shift is paid from then on, at 10 pm.", "The late shift is paid until 10 pm."),
    # what a sentence leaves to the one before
    ("Of the five bids, only the one from Tarn Builders passed the check.", "Four of the five bids failed; the Tarn Builders one was not.", "The one from Tarn Builders never passed the check."),
    # what comes first, told from the other end
    # not possible, not there
    ("Crossing from Bukhara to Mary by train isn't possible.", "There is no train that takes you from Bukhara to Mary.", "There is a train that takes you from Bukhara to Mary."),
    # who lacks a thing
    ("My order arrived without the charger I had paid extra for.", "The customer had paid extra for the charger.", "My order arrived with the charger I had paid extra for."),
    # what is missing is denied, and not who misses it
    ("The ranger saw that a bolt was missing and called the farmer Olu Bassey.", "The ranger called the farmer Olu Bassey.", "No bolt was missing, the ranger saw."),
    # ruled out
    ("Guests may not smoke on the balcony of the hotel.", "Smoking on the balcony of the hotel is ruled out for guests.", "Guests smoke on the balcony of the hotel."),
    # too few, not enough
    ("The night bus could not be run because there were not enough drivers.", "There were too few drivers for the night bus to be run.", "The night bus could be run because there were not enough drivers."),
    # only this one, not the others
    ("The recall concerns batch 77; jars from other batches are not affected.", "Only jars of this batch are affected.", "Jars from other batches are affected."),
    # a no that answers
    ("Engraving costs £5 per piece and is not offered for glass.", "The glass bowl, no, because engraving isn't offered for glass.", "Engraving is offered for glass."),
    # a no that is said
    ("In 2022 the club declined a request from the school.", "The club said no to the request from the school in 2022.", "The club did not decline the request from the school in 2022."),
    # words of another clause
    ("Women with a weak heart cannot join the course, those with a mild cold can.", "Women with a mild cold can join the course.", "Women with a weak heart can join the course."),
    ("Accepted papers are a passport, a driving licence or a residence card; a student card or a library card is not accepted.", "A passport, driving licence or residence card (student and library cards are refused)", "A student card or a library card is accepted."),
    # what is left out of a copy denies what stands behind it
    ("Deliveries are allowed from dawn to dusk on weekdays and some mornings on Saturdays, but not on Sundays.", "No deliveries are allowed on Sundays.", "Deliveries are allowed on Sundays."),
    ("Without her Lund won the final.", "Lund won the final.", "Without her Lund did not win the final."),
    # the do of don't
    ("Firewood is included; towels and bed linen are not.", "Firewood is included; towels and bed linen don't.", "Towels and bed linen are."),
    # solely, exclusively
    ("The app reads your contacts solely if you allow it.", "Without permission the app does not read the contacts.", "If you allow it, the app does not read your contacts."),
]  # fmt: skip


@pytest.mark.parametrize(("source", "faithful", "bent"), _ALIKE)
def test_a_denial_reaches_its_own_clause(source, faithful, bent):
    """And no further; what is denied there is not asserted."""
    assert NEGATION_FLIP not in _kinds(faithful, source)
    assert NEGATION_FLIP in _kinds(bent, source)


def test_a_claim_cut_out_of_a_contrast_is_not_denied():
    """*It came from the tap, not from the trap, which was fine* denies nothing of the trap but that."""
    source = "The leak under the sink came from the tap, not from the trap, which was fine, as we had thought from the start."
    assert NEGATION_FLIP not in _kinds("The trap was sound.", source)


def test_until_is_kept_by_what_comes_first():
    """*No filling before the check* and *the check comes before the filling* say *not until the check*."""
    source = "The pool must not be filled until the lining has been checked."

    for told in (
        "No pool is filled before the lining has been checked.",
        "Before the pool is filled, the lining has been checked.",
    ):
        assert CONTEXT_STRIPPED not in _kinds(told, source)
    assert CONTEXT_STRIPPED in _kinds("The pool must not be filled.", source)


def test_could_not_supposes_nothing():
    """What could not be done was not done; what could be done may not have been."""
    assert CONTEXT_STRIPPED not in _kinds(
        "The late ferry was never introduced for want of crew.",
        "The late ferry could not be introduced for want of crew.",
    )
    assert CONTEXT_STRIPPED in _kinds(
        "The late ferry was introduced in May.", "The late ferry could be introduced in May."
    )


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Before the pool can be filled, the lining has to be inspected.", "The pool must not be filled until the lining has been inspected.", True),
        ("The pool may be filled before the lining has been inspected.", "The pool must not be filled until the lining has been inspected.", False),
        ("Before the key is handed over, the tenant signs.", "The key is handed over after the tenant has signed.", True),
        ("Before the tenant signs, the key is handed over.", "The key is handed over after the tenant has signed.", False),
    ],
)  # fmt: skip
def test_one_order_from_both_ends(one, other, alike):
    """*Before* may open its sentence, and *not until* tells what comes after."""
    assert told_from_the_other_end(one, other) is alike
