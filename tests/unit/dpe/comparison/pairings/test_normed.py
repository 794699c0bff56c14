"""What may, must and must not be done, in whatever words the source and the claim say so."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.relations.norms import Norm
from interlock.dpe.comparison.cues import NEGATION_FLIP, NORM
from interlock.dpe.comparison.pairings.normed import turned_norm
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("text", "norm", "act"),
    [
        ("Visitors may photograph the frescoes.", Norm.ALLOWED, "photograph"),
        ("Visitors may not photograph the frescoes.", Norm.FORBIDDEN, "photograph"),
        ("The rules let visitors photograph the frescoes.", Norm.ALLOWED, "photograph"),
        ("The rules do not allow visitors to photograph the frescoes.", Norm.FORBIDDEN, "photograph"),
        ("Never photograph the frescoes.", Norm.FORBIDDEN, "photograph"),
        ("Nobody is permitted to photograph the frescoes.", Norm.FORBIDDEN, "photograph"),
        ("Pilgrims must kneel at the shrine.", Norm.REQUIRED, "kneel"),
        ("Pilgrims do not have to kneel at the shrine.", Norm.NOT_REQUIRED, "kneel"),
        ("Skating is forbidden on the lake.", Norm.FORBIDDEN, "skat"),
        ("No skating is allowed on the lake.", Norm.FORBIDDEN, "skat"),
        ("The manual says to drain the boiler.", Norm.REQUIRED, "drain"),
        ("Wearing a helmet is compulsory.", Norm.REQUIRED, "wear"),
        ("Wearing a helmet is optional.", Norm.NOT_REQUIRED, "wear"),
        ("Wearing a helmet is not mandatory.", Norm.NOT_REQUIRED, "wear"),
        ("No, pilgrims must kneel at the shrine.", Norm.REQUIRED, "kneel"),
    ],
)  # fmt: skip
def test_a_norm_is_read_from_any_wording(text: str, norm: Norm, act: str) -> None:
    """Modal verbs, verbs that allow, forbid and tell, commands, and acts named by a noun."""
    assert (norm, act) in {(each.norm, each.act) for sentence in passages(text) for each in sentence.norms}


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("The tower's guests may not feed the falcons.", "The charter allows you to feed the falcons.", "The charter does not allow you to feed the falcons."),
        ("Never drain the boiler: steam burns.", "The manual says to drain the boiler.", "The manual says not to drain the boiler."),
        ("Never drain the boiler: steam burns.", "The manual allows draining the boiler when it is cold.", "The manual forbids draining the boiler."),
        ("Skating on the lake is prohibited.", "You can skate on the lake.", "You cannot skate on the lake."),
        ("Eels caught in nets must not be smoked.", "Eels caught in nets can be smoked.", "Eels caught in nets may not be smoked."),
        ("Divers do not have to carry a licence.", "Divers are required to carry a licence.", "Divers need not carry a licence."),
        ("Divers must not touch the wreck.", "Divers do not have to touch the wreck.", "Divers may not touch the wreck."),
        ("Divers can rent a lamp.", "Divers must rent a lamp.", "Divers are free to rent a lamp."),
        ("Wearing a hood is voluntary.", "Divers must wear a hood.", "Divers do not have to wear a hood."),
    ],
)  # fmt: skip
def test_a_turned_norm_is_found_in_other_words(source: str, bent: str, faithful: str) -> None:
    """Both sides of each finding are named with what they say of the act."""
    first = found((source,), bent)[0]

    assert first.type == NEGATION_FLIP
    assert not found((source,), faithful)


def test_a_finding_names_both_norms() -> None:
    """What the source says of the act, and what the claim says."""
    source = "The guests of the tower may not feed the falcons."

    each = turned_norm(passages("The charter allows you to feed the falcons.")[0], Evidence(passages(source, "f0")))

    assert each is not None
    assert (each.slot, each.evidence, each.fact_id) == (NORM, source, "f0")
    assert each.source_value.startswith("forbidden: ")
    assert each.claim_value.startswith("allowed: ")


@pytest.mark.parametrize(
    ("sources", "claim"),
    [
        # the source forbids it in one case only
        (("You may not moor boats here except in a storm.",), "You may moor boats here in a storm."),
        (("You may moor boats here only with a permit.",), "You may not moor boats here."),
        # another thing, or one that is narrower on both sides
        (("You may not moor boats here.",), "You may moor rafts here."),
        (("The red lanes may not be used.",), "The blue lanes may be used."),
        # of some of them only, or at another place
        (("Eels caught in nets must not be smoked.",), "Eels can be smoked."),
        (("You may not moor boats at the weir.",), "You may moor boats at the pier."),
        # another source says so
        (("You may not moor boats here.", "From May on you may moor boats at the pier."), "You may moor boats at the pier."),
        # a question, and what only happens
        (("You may not moor boats here.",), "May I moor boats here?"),
        (("You may not moor boats here.",), "Some people moor boats here."),
    ],
)  # fmt: skip
def test_what_may_be_so_is_left_alone(sources: tuple[str, ...], claim: str) -> None:
    """A limit, another thing and another source are no contradiction."""
    evidence = Evidence(tuple(p for n, source in enumerate(sources) for p in passages(source, f"f{n}")))

    assert turned_norm(passages(claim)[0], evidence) is None


def test_a_way_to_do_it_in_time_is_no_duty() -> None:
    """*Must … by six* tells until when one may, and is left alone."""
    assert not found(("Divers can cancel the trip until six.",), "Divers must cancel the trip before six.")


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The lease can be ended within 30 days of the survey, not of the signing.", "The lease can be ended within 30 days of the survey.", "The lease cannot be ended within 30 days of the survey."),
        ("Oysters must not be collected between the pier and the mill because of a spill.", "East of the mill up to 3 kg per person may be collected.", "Oysters may be collected between the pier and the mill."),
    ],
)  # fmt: skip
def test_a_denial_of_another_phrase_or_place_forbids_nothing(source: str, faithful: str, bent: str) -> None:
    """*…, not of the signing* sets two phrases against each other, and one place alone is no act."""
    assert not found((source,), faithful)
    assert found((source,), bent)


@pytest.mark.parametrize("text", ["It permitted no", "Pets: allowed no", "They required no"])
def test_a_no_may_be_the_last_word(text: str) -> None:
    """A cell of a table ends without a mark; what comes behind the *no* is not looked for there."""
    assert passages(text)[0].norms == ()
