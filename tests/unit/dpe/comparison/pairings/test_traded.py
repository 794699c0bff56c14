"""What a claim puts together that its source keeps in two parts of one sentence, whatever the claim's verb is."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP
from interlock.dpe.comparison.bindings.stretches.parts import parted
from interlock.dpe.comparison.cues import DATE_SHIFTED, NUMBER_CHANGED
from interlock.dpe.comparison.pairings.traded import traded
from tests.support.dpe import pipeline
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_SWIMMING = "The pool is open to women on Mondays and to men on Wednesdays."
_CRAFTS = "Nurse Ada Finn fills the syringes, and Dr. Holm examines the ponies."
_SEATS = "The great hall holds 640 people, the chapel 95."
_TRAINS = "Because of ice, the 07:20 train was cancelled; the 09:40 train left on time."
_TOLLS = "Lorries pay 14 euros a crossing; vans pay 6 euros."
_TIDES = "The dyke at Ostwold held, but the one at Nieburg broke on 12 June."
_BIRDS = "Parrots may be kept, but snakes may not."
_SHOPS = "Kiosks may not sell fireworks, whereas the garden centre may."
_LEAK = "Theft of parcels is covered, but slow rusting is not."


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (_SWIMMING, "Men can use the pool on Mondays.", "Men can use the pool on Wednesdays."),
        (_SWIMMING, "On Wednesdays, women have the pool to themselves.", "On Mondays, women have the pool to themselves."),
        (_CRAFTS, "The examination is done by Ada Finn.", "The examination is done by Dr. Holm."),
        (_CRAFTS, "It is Holm who fills the syringes.", "It is Ada Finn who fills the syringes."),
        (_SEATS, "There is room for 95 people in the great hall and 640 in the chapel.", "There is room for 640 people in the great hall and 95 in the chapel."),
        (_TRAINS, "The 07:20 departed on time, while the 09:40 was called off in the ice.", "The 09:40 departed on time, while the 07:20 was called off in the ice."),
        (_TOLLS, "The toll for vans is 14 euros.", "The toll for vans is 6 euros."),
        (_TOLLS, "14 euros is what you pay for vans.", "6 euros is what you pay for vans."),
        (_TIDES, "On 12 June the dyke at Ostwold broke.", "On 12 June the dyke at Nieburg broke."),
        (_BIRDS, "You can keep snakes but no parrots.", "You can keep parrots but no snakes."),
        (_SHOPS, "Fireworks are available in kiosks but not at the garden centre.", "Fireworks are available at the garden centre but not in kiosks."),
        (_LEAK, "Slow rusting is included in what is covered.", "Slow rusting is excluded from what is covered."),
    ],
)  # fmt: skip
def test_what_a_source_keeps_apart_is_not_put_together(source: str, bent: str, faithful: str) -> None:
    """Names, weekdays, figures and yes or no stay with their own part, with another verb, another order or as a list."""
    assert found((source,), bent)
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("source", "bent", "kind", "stated", "claimed"),
    [
        (_SWIMMING, "Men can use the pool on Mondays.", DATE_SHIFTED, "Wednesdays", "Mondays"),
        (_SEATS, "There are 95 seats in the great hall.", NUMBER_CHANGED, "640", "95"),
        (_BIRDS, "You can keep snakes but no parrots.", NEGATION_FLIP, "not snakes", "snakes"),
    ],
)
def test_a_finding_names_both_fillers(source: str, bent: str, kind: str, stated: str, claimed: str) -> None:
    """What the source has in that place, and what the claim has."""
    each = found((source,), bent)[0]

    assert (each.type, each.source_value, each.claim_value) == (kind, stated, claimed)


@pytest.mark.parametrize(
    ("sources", "claim"),
    [
        # said elsewhere
        ((_SWIMMING, "In July men may come on Mondays, too."), "Men can use the pool on Mondays."),
        # both parts named together
        ((_CRAFTS,), "Ada Finn and Dr. Holm look after syringes and ponies."),
        # the second part has no subject of its own, or a pronoun for it
        (("The mill was bought by Ruud in 1920 and has made paper since 1931.",), "Ruud has made paper since 1931."),
        (("Ruud bought the mill in 1920, and he sold it in 1931.",), "Ruud sold the mill in 1931."),
        (("Eva Lind, founder of Nord, will run the north and Omar Haas takes the south.",), "Eva Lind will run the north."),
        (("The mill at Elm closed, but the one at Ash was sold on 4 May.",), "The mill at Ash was sold on 4 May."),
        # who acts is another noun, which may stand for anybody
        (("Rosa Lind moved to Graz, where the pair met the singer Ola Rask.",), "Rosa Lind met a singer."),
        # one stretch of time or road, and an end of a range
        (("A flood closed the road between Elm and Ash at 18:42 on 14 May.",), "The road at Elm was closed at 18:42."),
        (("The camp has 140 children aged 8 to 18, 46 of whom are girls.",), "The camp has 46 girls."),
        # what the claim denies or supposes
        ((_SWIMMING,), "Men cannot use the pool on Mondays."),
        ((_TOLLS,), "If vans paid 14 euros, few would come."),
        # what may be so of one thing
        (("Texts are published, but the places of the graves are not.",), "The graves lie under oaks."),
    ],
)  # fmt: skip
def test_what_may_be_so_is_left_alone(sources: tuple[str, ...], claim: str) -> None:
    """A word of another part is no finding where the source itself, a pronoun or a missing subject may bring it there."""
    evidence = Evidence(tuple(p for n, source in enumerate(sources) for p in passages(source, f"f{n}")))

    assert traded(passages(claim)[0], evidence) is None


@pytest.mark.parametrize(
    "text",
    ["site Elm Court, client Hartwell Homes, cranes 2.", "| Elm | 4 | and | Ash | 5 |", "word and " * 80 + "end."],
)
def test_what_is_no_sentence_has_no_parts(text: str) -> None:
    """A record, a row and an endless run of words are not cut."""
    assert not any(parted(sentence).halves for sentence in pipeline().language.nlp(text).sents)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Divers led by Ann Roe have traced the owner of 870 of the coins but the mint of only 214, because the firm's books were lost in the fire of 1947.", "Tracing the mints has proved harder, with just 214 coins solved."),
        ("Elm Ward at St Bride's Hospital closed to new admissions at 18:00 on Tuesday 4 May, after three patients in Bay C developed fever and a rash within nine hours.", "Three patients in the same bay developed fever and a rash within nine hours, so Elm Ward was closed to new patients at six in the evening on 4 May."),
    ],
)  # fmt: skip
def test_a_claim_that_tells_both_halves_has_traded_nothing(source: str, claim: str) -> None:
    """What would stand in the place of a word is told too, of what the source tells it of."""
    evidence = Evidence(passages(source))
    assert all(traded(each, evidence) is None for each in passages(claim))


_CABINS = "At 20:40, guide Lena Moss gave Mr Okoro, in cabin 3, a life jacket of 90 newtons that had been set aside for Mrs Bell, in cabin 8."
_SWANS = "Of the 30 swans, 18 left in March and 12 stayed."
_LEAVERS = "Of the 30 people who resigned, 18 left because of the noise, 7 moved away and 5 gave no reason."
_LOCK = "The journey from Ostra to Lund will take 70 minutes, 15 minutes less than now, because the speed limit over Bray Bridge has been raised from 30 to 50 mph."
_CLOCK = "In May 2019 the retired sexton Paul Hall gave the Abbey Museum a brass clock that his great-grandfather, Amos Hall, had built in 1887."
_STALLS = "Anyone selling books must be gone by 4, all others may stay until 6."


@pytest.mark.parametrize(
    ("source", "faithful"),
    [
        # each figure stands beside its own party in the claim, too
        (_CABINS, "Mr Okoro, in cabin 3, was given a life jacket that should have gone to Mrs Bell in cabin 8."),
        # what is counted out belongs to all of it
        (_LEAVERS, "Thirty people have left the choir."),
        (_SWANS, "Eighteen swans left in March, and 12 stayed."),
        # a figure that says by how much another differs is no part of its own
        (_LOCK, "Trips to Lund get 15 minutes shorter."),
        # what a relative clause tells is told of the noun before it
        (_CLOCK, "A brass clock from 1887, donated to the Abbey Museum by Paul Hall in May 2019, turned out to lack a hand."),
        # all but
        (_STALLS, "Those who sell anything but books may stay until six."),
        # an event that a part denies is none of that part
        (_LEAVERS, "Noise was the most common reason, given by eighteen people, all of them tenors."),
    ],
)  # fmt: skip
def test_what_belongs_to_both_parts_is_not_traded(source: str, faithful: str) -> None:
    """The parts of a sentence are cut where one thing ends, and not inside it."""
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (_SWANS, "Twelve swans left in March, and 18 stayed."),
        (_CLOCK, "The clock was given to the Abbey Museum in 1887."),
        ("Ferries to Lund take 70 minutes, and buses to Bray 15 minutes.", "The trip to Lund takes 15 minutes."),
    ],
)  # fmt: skip
def test_what_belongs_to_one_part_is_still_traded(source: str, bent: str) -> None:
    """The bent twins of the same forms."""
    assert found((source,), bent)


def test_the_noun_of_a_relative_clause_belongs_to_it() -> None:
    """*A clock that his great-grandfather, Amos Hall, had built in 1887* was built then, and given in another year."""
    dated = [one for one, other in passages(_CLOCK)[0].parted.halves if "1887" in {bead.text for bead in other.beads}]

    assert dated and not any(bead.text == "clock" for one in dated for bead in one.beads)
    assert any(bead.text == "Paul Hall" for one in dated for bead in one.beads)
