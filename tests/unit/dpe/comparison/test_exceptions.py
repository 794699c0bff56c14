"""What a source says of all but one, and claims about the one (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.cues import NEGATION_FLIP
from interlock.dpe.comparison.direct import cues
from interlock.dpe.comparison.exceptions import excepted, includes_exception, tells_exception
from interlock.dpe.values.frames import frame
from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
PAIRS = [
    ("The policy covers all parts except the battery.", "The battery is not covered.", "The battery is covered."),
    ("Apart from the cellar, the flat was renovated.", "The cellar was not renovated.", "The cellar was renovated."),
    ("Every branch but the one in Lenz Street has a safe.", "The branch in Lenz Street is the only one without a safe.", "The branch in Lenz Street has a safe."),
    ("All exams are written, with the exception of French.", "French is the only exam that is not written.", "French is written like the others."),
    ("No pets other than ferrets are allowed.", "Ferrets are allowed.", "Ferrets are not allowed."),
    ("Nobody except the treasurer may sign.", "Only the treasurer may sign.", "The treasurer may not sign."),
    ("Water damage is covered, except damage caused by flooding.", "Water damage is covered unless it is caused by flooding.", "Water damage, including damage caused by flooding, is covered."),
    ("Excluding Guernsey, delivery is free.", "Delivery to Guernsey is not free.", "Delivery to Guernsey is free."),
]  # fmt: skip


def cued(source: str, answer: str) -> list[str]:
    claim, fact = frame(answer), frame(source)
    return [cue.type for sentence in claim.sentences for cue in cues(sentence, claim, fact)]


@pytest.mark.parametrize(("source", "faithful", "bent"), PAIRS)
def test_what_is_excepted_is_not_counted_among_the_others(source: str, faithful: str, bent: str) -> None:
    """The claim that tells the exception is left alone, and the one that drops it is found with the exception."""
    told = found((source,), bent)

    assert found((source,), faithful) == []
    assert NEGATION_FLIP in {each.type for each in told}


@pytest.mark.parametrize(("source", "faithful", "bent"), PAIRS)
def test_to_tell_an_exception_is_no_cue(source: str, faithful: str, bent: str) -> None:
    """The *not* of an exception turns nothing round, though its source has none."""
    assert cued(source, faithful) == []


def test_an_exception_says_nothing_of_other_days() -> None:
    """What is so except on Mondays is so on Tuesdays."""
    assert cued("The pool is open daily except Mondays.", "The pool is open on Tuesdays.") == []
    assert cued("The pool is open daily except Mondays.", "The pool is closed on Mondays.") == []
    assert cued("The pool is open on Mondays.", "The pool is open on Tuesdays.") == ["DATE_SHIFTED"]
    assert cued("The pool is open all year except in February.", "The pool is open in June.") == []


@pytest.mark.parametrize(
    "claim",
    ["Four rooms have a balcony.", "Is the battery covered?", "Unlike the battery, the motor is covered.", "The battery is heavy."],
)  # fmt: skip
def test_other_claims_include_nothing(claim: str) -> None:
    """A count, a question, a claim that sets the one apart, and one that says something else."""
    source = "All parts are covered except the battery."

    assert includes_exception(claim, source) is None
    assert includes_exception(claim, "All rooms except room 4 have a balcony.") is None


def test_a_condition_is_no_exception() -> None:
    """*Except if* opens a clause; what it supposes is compared as a condition."""
    assert excepted("All parts are covered except if they are used at sea.") is None


def test_what_a_source_says_of_the_one_itself_includes_nothing() -> None:
    """A relative clause behind the exception says what holds of it; a claim in its words is no inclusion."""
    source = "Every flat has its own cellar, except flat Orion, which uses that of the caretaker."

    assert includes_exception("Flat Orion uses the cellar of the caretaker.", source) is None
    assert includes_exception("Flat Orion has its own cellar.", source) is not None


def test_an_exception_may_be_told_of_further() -> None:
    """*Except the first one, which is …* states an exception as well."""
    source = "Fittings take place at home, except the first one, which is done in the shop."

    assert includes_exception("All fittings, the first one included, take place at home.", source) is not None


def test_what_is_ruled_out_of_the_one_is_told_rightly():
    """*Ruled out* and *forbidden* deny as *not* does."""
    source = "Small dogs and cats are allowed in all carriages except the dining car."

    assert tells_exception("The dining car is the one carriage where even small dogs and cats are ruled out.", source)
    assert tells_exception("In the dining car dogs are forbidden.", source)
    assert not tells_exception("Dogs are allowed in the dining car.", source)
