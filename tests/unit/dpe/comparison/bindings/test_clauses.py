"""Clauses that word one thing differently: told of another, or with a word turned into its opposite (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, NEGATION_FLIP
from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

FERRY = "Harbour master Ida Quist expects the ferry to be full in August. Captain Leo Brandt ordered a new radio for the ferry."
GARDEN = "Gardener Mona Ilves prunes the apple trees; her colleague Piet Rask feeds the goats."
MILL = "The dam at Osterby held, but the one at Lunde burst on 3 May after heavy rain."
PANEL = "The audit panel screens new suppliers in June. The city treasurer pays the invoices of the museum."
LAMP = "A blue lamp means that the battery pack is worn; a white lamp means that the pump has stopped."
OWNER = "The rector, Rosa Lindt, attributed the success of the choir to a new rehearsal plan. Tenor Emil Voss sang at the gala."

PARTNERS = (
    (FERRY, "In August, thinks Ida Quist, the ferry will be full.", "Leo Brandt thinks the ferry will be full in August.", "Quist"),
    (GARDEN, "The apple trees are cut back by Mona Ilves.", "Piet Rask prunes the old apple trees each spring.", "Ilves"),
    (MILL, "The dam at Lunde burst on 3 May.", "After heavy rain it burst at Osterby on 3 May.", "Lunde"),
    (PANEL, "New suppliers are screened by the audit panel in June.",
     "New suppliers are screened by the city treasurer in June.", "panel"),
    (LAMP, "A blue lamp tells you that the battery pack is worn.", "A white lamp tells you that the battery pack is worn.", "blue"),
    (OWNER, "Rosa Lindt puts the success of the choir down to a new rehearsal plan.",
     "Emil Voss puts the success of the choir down to a new rehearsal plan.", "Lindt"),
)  # fmt: skip

TURNED = (
    ("Kestrel barley resisted brown mildew.", "Kestrel barley withstood brown mildew.", "Kestrel barley was susceptible to brown mildew."),
    ("Plum prices fell between May and July.", "Plums became cheaper between May and July.", "Plums became dearer between May and July."),
    ("Output of the Norvik mine fell by 4% in 2023.", "In 2023 the Norvik mine produced 4% less.",
     "In 2023 the Norvik mine produced 4% more."),
    ("The night alarm is off by default.", "The night alarm is disabled by default.", "The night alarm is enabled by default."),
    ("The archive is encrypted with a key that the clerk holds.", "The archive is encrypted.", "The archive is unencrypted."),
    ("The council raised the fees for berths in the marina by 6%.", "Fees for berths in the marina went up by 6%.",
     "Fees for berths in the marina went down by 6%."),
)  # fmt: skip


@pytest.mark.parametrize(("fact", "claim", "source"), [(p[0], p[2], p[3]) for p in PARTNERS])
def test_what_is_said_of_one_and_told_of_another_is_found(fact, claim, source):
    """The source's clause that a claim follows names somebody else, whatever verbs the two use."""
    findings = found((fact,), claim)

    assert [each.type for each in findings] == [ENTITY_SUBSTITUTED]
    assert source in findings[0].source_value


@pytest.mark.parametrize(("fact", "claim"), [(p[0], p[2]) for p in TURNED])
def test_a_word_turned_into_its_opposite_is_found(fact, claim):
    """Comparatives, states and rates of one thing count, of any word class."""
    assert [each.type for each in found((fact,), claim)] == [NEGATION_FLIP]


@pytest.mark.parametrize(
    ("fact", "claim"),
    [
        *((p[0], p[1]) for p in (*PARTNERS, *TURNED)),
        ("Rates in Ulm are lower than in Bonn.", "Rates are higher in Bonn than in Ulm."),
        ("Ada Berg finished ahead of Lia Noss.", "Lia Noss finished behind Ada Berg."),
        ("Dr Noor sold the clinic to the nurse Eva Holm.", "Eva Holm bought the clinic from Dr Noor."),
        ("The tenant keeps the cellar dry. Elmwood Ltd owns the house. The Landlord repairs the roof and the boiler.",
         "Elmwood Ltd has to repair the roof and the boiler."),
        ("Carla Mons runs the bakery. She sells rye bread on Fridays.", "Carla Mons sells rye bread on Fridays."),
    ],
)  # fmt: skip
def test_the_same_in_other_predicates_is_no_finding(fact, claim):
    """Converses, comparisons from the other side, defined terms and pronouns bind the same."""
    assert found((fact,), claim) == []


def test_a_name_beside_a_noun_is_the_filler():
    """A swap is seen through an apposition, and a phrasal verb is its one-word fellow."""
    fact = "Tarn Foods sold its dairy in Voss to the Danish group Holm Mejeri in May 2021."

    assert found((fact,), "In May 2021 the dairy in Voss was bought by Holm Mejeri from Tarn Foods.") == []
    assert found((fact,), "In May 2021 the dairy in Voss was bought by Tarn Foods from Holm Mejeri.")
    assert found(("The regulator cleared the takeover of Brisk Air by Sund Air.",), "Brisk Air took over Sund Air.")
