"""Two parties of a source, each of which an answer gives what the source gives the other."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED
from interlock.dpe.comparison.pairings.swapped import can_act, swapped
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_PLUMS = "The growers' union Corvo took in 900 crates from its orchards and passed half of them to the jam maker Dulce."
_OPERA = "Stage director Ilse Brand cast the singers, and conductor Paolo Ricci rehearsed the chorus in May."
_SHIP = "The yard Hansa built the ferry; the design office Norr & Falk drew its hull."
_MAP = "The survey was carried out by the Institute of Kiel and financed by the mining company, Terrastone."
_MERGER = "The court allowed the purchase of Bellini Foods by Ostra Capital in June."
_CRITICS = "Critic Jana Weiss said that the sale of the Tivoli cinema had emptied the quarter; mayor Olaf Brink blamed the closed bridge."


def _swaps(sources: tuple[str, ...], answer: str) -> list[str]:
    evidence = Evidence(tuple(p for n, source in enumerate(sources) for p in passages(source, f"f{n}")))
    return [finding.type for _, finding in swapped(passages(answer), evidence)]


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        (
            _PLUMS,
            "Half of the 900 crates that Dulce had from its orchards went to Corvo, which cooks jam.",
            "Half of the 900 crates that Corvo had from its orchards went to Dulce, which cooks jam.",
        ),
        (
            _OPERA,
            "The singers were chosen by Paolo Ricci. Ilse Brand worked on the chorus in May.",
            "The singers were chosen by Ilse Brand. Paolo Ricci worked on the chorus in May.",
        ),
        (
            _SHIP,
            "The ferry comes from the yard of Norr & Falk and has a hull by Hansa.",
            "The ferry comes from the yard of Hansa and has a hull by Norr & Falk.",
        ),
        (
            _MAP,
            "Terrastone ran the survey, and the Institute of Kiel paid for it.",
            "The Institute of Kiel ran the survey, and Terrastone paid for it.",
        ),
        (
            _MERGER,
            "In June the court let Bellini Foods take over Ostra Capital.",
            "In June the court let Ostra Capital take over Bellini Foods.",
        ),
        (
            _CRITICS,
            "Olaf Brink, the mayor, points to the sale of the Tivoli cinema. Jana Weiss, a critic, puts it down to the bridge being closed.",
            "Jana Weiss, a critic, points to the sale of the Tivoli cinema. Olaf Brink, the mayor, puts it down to the bridge being closed.",
        ),
    ],
)
def test_a_swap_of_two_parties_is_found_whatever_the_verbs(source: str, bent: str, faithful: str) -> None:
    """Other verbs, the passive and two sentences in place of one change nothing."""
    assert set(_swaps((source,), bent)) == {ENTITY_SUBSTITUTED}
    assert not _swaps((source,), faithful)


def test_a_finding_is_about_the_sentence_that_swaps_and_names_both_parties() -> None:
    """The party of the source in whose place the answer has the other, with the sentence that shows it."""
    answer = "The museum opened late. Terrastone ran the survey, and the Institute of Kiel paid for it."
    evidence = Evidence(passages(_MAP, "f0"))

    found = list(swapped(passages(answer), evidence))

    assert {sentence.text for sentence, _ in found} == {
        "Terrastone ran the survey, and the Institute of Kiel paid for it."
    }
    assert {frozenset({each.source_value, each.claim_value}) for _, each in found} >= {
        frozenset({"Kiel", "Terrastone"})
    }
    assert {(each.slot, each.evidence, each.fact_id) for _, each in found} == {("party", _MAP, "f0")}


@pytest.mark.parametrize(
    ("sources", "answer"),
    [
        # the sources tell it of both
        ((_OPERA, "Paolo Ricci also cast two singers, while Ilse Brand rehearsed the chorus in June."),
         "The singers were chosen by Paolo Ricci. Ilse Brand worked on the chorus."),
        # one word only, and in one direction only
        ((_OPERA,), "Paolo Ricci saw the singers."),
        ((_OPERA,), "Paolo Ricci heard the singers who had been cast by Ilse Brand."),
        # titles move with their names
        ((_OPERA,), "The director is Ilse Brand and the conductor Paolo Ricci."),
        # one party under two words
        (("Terrastone paid for the survey. The company also lent the ship.",), "The company paid for the survey, and Terrastone lent the ship."),
        # what is done together
        (("Hansa and Falk built the ferry and drew the hull.",), "Falk built the ferry and Hansa drew the hull."),
    ],
)  # fmt: skip
def test_what_may_be_so_is_left_alone(sources: tuple[str, ...], answer: str) -> None:
    """A party keeps what the sources tell of it anywhere, what it does with the other, and its own title."""
    assert not _swaps(sources, answer)


@pytest.mark.parametrize("source", [_PLUMS, _OPERA, _SHIP, _MAP, _MERGER, _CRITICS])
def test_a_copy_swaps_nothing(source: str) -> None:
    """A source beside itself is no swap of it."""
    assert not _swaps((source,), source)


@pytest.mark.parametrize(
    ("sentence", "acting"),
    [("The owner wrote to the editor.", 2), ("The council paid the nurses.", 2), ("The trains run on weekdays.", 0)],
)
def test_nouns_are_parties_where_they_can_act(sentence: str, acting: int) -> None:
    """Of other things, a word that has changed sides says little."""
    parties = [tie.party for each in passages(sentence) for tie in each.ties.parties]
    assert sum(map(can_act, parties)) == acting
