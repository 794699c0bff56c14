"""Who gives and who receives, who tells and who is told, and who takes over from whom, whatever verb says it."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_KILN = "The pottery rents its kiln from Ashdown Ceramics."
_GATE = "The porter phoned the warden about the open gate."
_VAN = "Corin Bates lent Nadia Flores the van."
_DEPOSIT = "The organiser will reimburse the band for the broken amplifier."
_TRADE = "Velma Orchards buys its bees from Tolland Apiary and sells pears to the apiary."
_CHOIR = "Ida Marsh led the choir until June; Ravi Sen then took over the job from her."
_RENT = "Amply refunded her the deposit and then recovered the money from Bodmin's account."


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (_KILN, "Ashdown Ceramics rents its kiln from the pottery.", "Ashdown Ceramics lets the kiln to the pottery."),
        (_KILN, "The pottery rents the oven to Ashdown Ceramics.", "Ashdown Ceramics rents the oven to the pottery."),
        (_KILN, "The kiln is leased to Ashdown Ceramics by the pottery.", "The kiln is leased to the pottery by Ashdown Ceramics."),
        (_GATE, "The warden alerted the porter.", "The porter alerted the warden."),
        (_GATE, "The porter was informed by the warden.", "The warden was informed by the porter."),
        (_GATE, "The porter heard of it from the warden.", "The warden heard of it from the porter."),
        (_VAN, "Corin Bates borrowed the van from Nadia Flores.", "Nadia Flores borrowed the van from Corin Bates."),
        (_DEPOSIT, "The band has to compensate the organiser.", "The organiser has to compensate the band."),
        (_DEPOSIT, "As the band was liable, it will refund the organiser.", "As the organiser was liable, it will refund the band."),
        (_TRADE, "It keeps Tolland Apiary, which Velma Orchards supplies with bees, going.", "Velma Orchards is a customer of Tolland Apiary."),
        (_TRADE, "Tolland Apiary supplies Velma Orchards with pears.", "Tolland Apiary supplies Velma Orchards with bees."),
        (_TRADE, "Velma Orchards sells bees to Tolland Apiary.", "Velma Orchards sells pears to Tolland Apiary."),
        (_CHOIR, "Ida Marsh took charge of the choir from Ravi Sen.", "Ravi Sen took charge of the choir from Ida Marsh."),
        (_RENT, "Bodmin took the money back from Amply's account.", "Amply took the money back from Bodmin's account."),
    ],
)  # fmt: skip
def test_what_passes_the_other_way_is_noticed(source: str, bent: str, faithful: str) -> None:
    """The verb may be about either party, active or passive, and a noun may say it: a customer of somebody."""
    assert found((source,), bent)
    assert not found((source,), faithful)


def test_a_finding_names_both_parties() -> None:
    """The slot says who gives or who tells."""
    lent, told = (
        found((_VAN,), "The van was lent to Corin Bates by Nadia Flores."),
        found((_GATE,), "The warden alerted the porter."),
    )

    assert ["Corin Bates", "Nadia Flores"] == [lent[0].source_value, lent[0].claim_value]
    assert ("told-by", "The porter", "The warden") == (told[0].slot, told[0].source_value, told[0].claim_value)


@pytest.mark.parametrize(
    ("sources", "answer"),
    [
        (("The gym buys towels from Lindo.", "Lindo buys snacks from the gym."), "The gym sells snacks to Lindo."),
        (("The nurse called the doctor.", "The doctor asked her to wait."), "The doctor told the nurse that she should wait."),
        (("Mara paid the hotel a deposit.", "The hotel refunded Mara the deposit."), "The hotel paid the deposit back to Mara."),
        (("Arden Ltd sells tents to Boyle.",), "Boyle pays Arden Ltd for tents."),
        (("Arden Ltd did not lend Boyle the tent.",), "Boyle did not lend Arden Ltd the tent."),
    ],
)  # fmt: skip
def test_what_may_pass_both_ways_is_left_alone(sources: tuple[str, ...], answer: str) -> None:
    """Another thing, an answer to what was told, and what is paid for goods go the other way by right."""
    assert not [f for f in found(sources, answer) if f.slot in {"giver", "told-by"}]


def test_a_pronoun_stands_for_the_one_that_can_be_meant() -> None:
    """With two who can be meant nothing is read."""
    (one,) = passages("Ida Marsh ran the shop, and Ravi Sen bought it from her.")
    (two,) = passages("Ida Marsh met Zoe Hall when Ann Lee ran the shop, and Ravi Sen bought it from her.")

    assert ["Ida Marsh"] == [each.giver.text for each in one.transfers]
    assert not two.transfers
