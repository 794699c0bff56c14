"""Denials in words: paraphrases of one polarity are no flip, and a claim of the other polarity is (SPEC-005 §5.3)."""

import pytest

from interlock.dpe.comparison.cues import NEGATION_FLIP
from interlock.dpe.comparison.denials import places
from interlock.dpe.comparison.direct import cues
from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import lex
from interlock.dpe.values.frames import frame

pytestmark = pytest.mark.req("DPE-3")


def flipped(claim, source):
    framed, fact = frame(claim), frame(source)
    return any(cue.type == NEGATION_FLIP for sentence in framed.sentences for cue in cues(sentence, framed, fact))


@pytest.mark.parametrize(
    ("text", "denying"),
    [
        ("Reports are due no later than 30 April.", []),
        ("Not only students may borrow books.", []),
        ("There is no doubt about it.", []),
        ("The no-claims discount stays.", []),
        ("No dish in the north of the country is better than the eel.", []),
        ("Neither the pump nor the motor was damaged.", ["neither"]),
        ("The wound was free of infection.", ["free"]),
        ("The trainer refused to sign.", ["refused"]),
        ("The request was refused by both.", []),
        ("They stopped taking cash.", ["stopped"]),
        ("It is not impossible to order books.", ["not", "impossible"]),
        ("They do not open unless it rains.", ["not", "unless"]),
        ("Ezra: no, I took the node out.", []),
        ("Spare keys: no copies", ["no"]),
        ("Towels: one missing", ["missing"]),
        ("The missing dog was found.", []),
        ("Direct sun must be avoided.", ["avoided"]),
        ("They left early to avoid the queue.", []),
    ],
)
def test_a_word_denies_where_it_stands(text, denying):
    """Phrases that measure or belittle deny nothing; some verbs and adjectives do without a *not*."""
    tokens = lex(fold(text))
    assert [tokens[n].low for n in places(tokens, 0, len(tokens))] == denying


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The trainer refused to sign the form.", "The trainer did not sign the form.", "The trainer has signed the form."),
        ("A windscreen claim does not affect the discount.", "The discount is unaffected by a windscreen claim.", "The discount is affected by a windscreen claim."),
        ("The club no longer accepts cash.", "The club has stopped accepting cash.", "The club still accepts cash."),
        ("It is not impossible to order books from abroad.", "Books can be ordered from abroad.", "It is impossible to order books from abroad."),
        ("Neither the trainer nor the manager signed the form.", "The trainer and the manager did not sign the form.", "The trainer and the manager signed the form."),
        ("You do not have to submit a certificate.", "You need no certificate.", "You have to submit a certificate."),
        ("Two letters are needed for the long course, none for the short course.", "Two letters are needed for the long course.", "Two letters are not needed for the long course."),
    ],
)  # fmt: skip
def test_only_the_other_polarity_is_a_flip(source, faithful, bent):
    """What denies is counted on both sides, whatever word denies."""
    assert not flipped(faithful, source)
    assert flipped(bent, source)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # what excludes in one word is denied of another verb
        ("Bath house: towels missing", "There were no towels in the bath house.", "There were towels in the bath house."),
        ("Do not mix this glue with water.", "Mixing this glue with water must be avoided.", "This glue may be mixed with water."),
        ("Pensioners are exempt from the rise in bus fares, the mayor said.", "The rise in bus fares does not concern pensioners, according to the mayor.", "The rise in bus fares hits pensioners, according to the mayor."),
        # what holds of one place or case only does not hold of another
        ("The barge takes on coal only at Lund, since the quay at Vik is too low.", "The barge cannot take on coal at Vik as the quay is too low.", "The barge does not take on coal."),
        ("The sand for the new court comes from the western pit only, as the eastern pit is wet.", "No sand from the eastern pit comes to the new court.", "No sand from the western pit comes to the new court."),
        ("The barge takes on coal only at Lund.", "The barge does not take on coal at Vik.", "The barge does not take on coal."),
        # a sentence that goes on with another clause
        ("Mira painted the long fence in one day, I hardly helped.", "Mira painted the long fence.", "Mira hardly painted the long fence."),
        ("The fund pays for forty lessons within a year and you owe nothing.", "The fund pays for forty lessons.", "The fund does not pay for forty lessons."),
        # one deal from its two sides
        ("It sells timber to Norrland, which has few woods.", "Norrland buys timber.", "It buys timber from Norrland, which has few woods."),
    ],
)  # fmt: skip
def test_one_state_told_in_words_of_two_sides_is_no_flip(source, faithful, bent):
    """And its bent twin is one."""
    assert not flipped(faithful, source)
    assert flipped(bent, source)


def test_a_denial_that_ends_the_claims_own_clause_counts():
    """What stands behind a claim's words without a break is of its clause."""
    assert flipped("The offer was taken up.", "The offer was taken up by nobody.")


def test_a_denial_of_another():
    """What is said not to be of the southern region says nothing of the northern one."""
    source = "The northern region was affected, the southern region was not."
    assert not flipped("It was the northern region that was affected.", source)


def test_what_ends_does_not_deny_that_it_begins():
    """A term begins on one day and ends on another; on one and the same day it does not."""
    source = "The cooling-off period of the contract begins on 6 January 2025."

    assert not flipped("The cooling-off period of the contract ends in January.", source)
    assert flipped("The contract's cooling-off period ends on 6 January 2025.", source)


def test_the_month_of_may_supposes_nothing():
    """14 May is no *may* that a claim drops."""
    source = "Nina Brandt was born on 14 May 1990 and joined the club in 2020."
    framed, fact = frame("Nina Brandt joined the club in 2020."), frame(source)
    assert not [cue for sentence in framed.sentences for cue in cues(sentence, framed, fact)]


def test_a_contrast_denies_its_own_words_alone():
    """*At the depot, not at drivers' homes* says nothing against the depot; *not after that*, which names nothing, is about what stands before."""
    charging = "Night charging takes place at the depot, not at drivers' homes."

    assert not flipped("The vans are charged at the depot during the night.", charging)
    assert flipped("Charging takes place at drivers' homes.", charging)
    assert flipped("Refunds are paid after Friday.", "Refunds are paid until Friday, not after that.")
