"""Fidelity: what a claim bends, and what only looks so (SPEC-005 §5.3)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from interlock.dpe.document import Distortion, NliScores
from interlock.dpe.grounding import fidelity
from interlock.dpe.grounding.attribution import NOTHING, ClaimEvidence
from interlock.dpe.grounding.fidelity import distortions, flaws
from tests.support.dpe import WordInference, claim, pipeline

pytestmark = pytest.mark.models

LAST, THIS = "Revenue was 4 million dollars in spring.", "Revenue was 5 million dollars in summer."
NEUTRAL = NliScores(0.1, 0.9, 0.0)


class Doubtful(WordInference):
    """A model that entails nothing."""

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.tile(np.array([0.0, 1.0, 0.0], dtype=np.float32), (len(pairs), 1))


async def bent(text: str, source: str, *others: str) -> dict[str, list[str]]:
    near = tuple((f"f{n}", other) for n, other in enumerate(others, 2))
    evidence = {"c1": ClaimEvidence("f1", 0.9, source, NEUTRAL, source, NEUTRAL, near)}
    found = await distortions([claim(text)], evidence, WordInference(), pipeline().language)
    return {name: [d.type for d in each] for name, each in found.items()}


@pytest.mark.req("DPE-3")
async def test_a_changed_value_is_a_distortion():
    """Against the nearest unit, with its fact."""
    assert "NUMBER_CHANGED" in (await bent("Revenue was 5 million dollars.", LAST))["c1"]


@pytest.mark.req("DPE-3")
async def test_a_unit_that_supports_the_claim_clears_it():
    """Last year's figure is no distortion of this year's."""
    assert await bent("Revenue was 5 million dollars.", LAST, THIS) == {}


@pytest.mark.req("DPE-3")
async def test_a_unit_that_only_has_the_value_clears_nothing():
    """Five million of something else does not support the claim."""
    assert "c1" in await bent("Revenue was 5 million dollars.", LAST, "The city has 5 million trees.")


NEAR_WEIR = "The mill may raise the sluice only between October and March."
OTHER_WEIR = "On 4 October 2024 a court ordered the mill to pay 900 euros and to lower the sluice by 1 May 2025."


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("premise", "entailment", "cleared"), [(OTHER_WEIR, 0.8, True), (OTHER_WEIR, 0.2, False), (NEAR_WEIR, 0.8, False)]
)
async def test_the_premise_that_entails_a_claim_clears_it(premise, entailment, cleared):
    """It is about that sentence, though another one is nearer."""
    scores = NliScores(entailment, 0.1, 0.9 - entailment)
    shown = ClaimEvidence("f1", 0.9, NEAR_WEIR, NEUTRAL, premise, NEUTRAL, (), scores)
    found = await distortions(
        [claim("The sluice has to be lowered by 1 May 2025.")], {"c1": shown}, WordInference(), pipeline().language
    )

    assert (found == {}) is cleared


LAG, AGAIN = "Lag above 5,000 messages pages the engineer.", "Scale down again once lag is below 500."


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "entailment", "found"),
    [
        ("Once the lag has dropped below 500 messages.", 0.7, False),
        ("Once the lag has dropped below 500 messages.", 0.3, True),
        ("Lag above 500 messages pages the engineer.", 0.7, True),
        ("Once the lag has dropped below 700 messages.", 0.7, True),
    ],
)
async def test_a_value_of_another_unit_is_no_bent_one(text, entailment, found):
    """Where the sources entail the claim, and the other unit has its figure and more of its words."""
    best = NliScores(entailment, 0.9 - entailment, 0.1)
    evidence = {"c1": ClaimEvidence("f1", 0.7, LAG, NEUTRAL, AGAIN, best, (("f2", AGAIN),), best)}
    bends = await distortions([claim(text)], evidence, Doubtful(), pipeline().language)

    assert bool(bends) == found


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "found"),
    [("No, deploys are frozen today.", {}), ("No deploys are frozen today.", {"c1": ["NEGATION_FLIP"]})],
)
async def test_a_particle_that_answers_negates_nothing(text, found):
    """*No, they are frozen* says that they are."""
    evidence = {"c1": ClaimEvidence("f1", 0.9, "Deploys are frozen today.", NEUTRAL, "", NEUTRAL)}

    bends = await distortions([claim(text)], evidence, WordInference(), pipeline().language)

    assert {name: [d.type for d in each] for name, each in bends.items()} == found


@pytest.mark.req("DPE-3")
async def test_without_evidence_nothing_is_bent():
    """What rests on nothing is not a distortion of anything."""
    assert await distortions([claim("Revenue fell.")], {"c1": NOTHING}, WordInference(), pipeline().language) == {}


@pytest.mark.req("DPE-3")
def test_a_changed_value_counts_once():
    """As a distortion, not as a fabrication too; another invention of the same claim stays."""
    changed = (Distortion("NUMBER_CHANGED", "330 metres", "390 metres", "f1"),)
    found = flaws({"c1": ("390 metres", "Hans Müller"), "c2": ("390 metres",)}, {"c1": changed}, [])

    assert found.fabrications == {"c1": ("Hans Müller",), "c2": ("390 metres",)}
    assert found.distortions == {"c1": changed}


@pytest.mark.req("DPE-3")
def test_a_substituted_name_is_still_made_up():
    """Only values are explained away: a name without basis has none."""
    changed = (Distortion("ENTITY_SUBSTITUTED", "NIST", "ISO", "f1"),)

    assert flaws({"c1": ("ISO",)}, {"c1": changed}, []).fabrications == {"c1": ("ISO",)}


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "remains"),
    [("Treadmill  XT9000", False), ("Treadmill XT90", True), ("15", True), ("15 metres", True), ("NIST", True)],
)
def test_what_stands_in_a_fact_is_not_made_up(text, remains):
    """Word for word, as a whole; part of a word or of a figure does not count."""
    facts = ["The treadmill XT9000 is 15.5 metres long.", "Administration"]

    assert bool(flaws({"c1": (text,)}, {}, facts).fabrications) is remains


def test_the_heavy_libraries_wait_until_a_service_opens():
    """Importing the wiring, the doctor's part and the command line loads no model library."""
    code = (
        "import sys, interlock.dpe.wiring, interlock.dpe.inference.models, interlock.cli.dpe;"
        "print([m for m in ('spacy', 'onnxruntime', 'presidio_analyzer', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "near", "found"),
    [
        ("The 5,400 euros are to be paid by Marsh Cranes.", "Marsh Cranes offered 3,900 euros on 2 May.", False),
        ("The 4,700 euros are to be paid by Marsh Cranes.", "Marsh Cranes offered 3,900 euros on 2 May.", True),
        ("The 5,400 euros are to be paid by Dune Cranes.", "The 3,900 euros are to be paid by Dune Cranes.", True),
    ],
)
async def test_another_sentence_of_the_premise_may_say_it(text, near, found):
    """Where it has the claim's own figure and names, and more of its words than the nearest one."""
    other = "In June Marsh Cranes agreed to pay the 5,400 euros."
    sure = NliScores(0.8, 0.2, 0.0)
    evidence = {"c1": ClaimEvidence("f1", 0.9, near, NEUTRAL, f"{near} {other}", sure, plain_scores=sure)}
    bent_claims = await distortions([claim(text)], evidence, Doubtful(), pipeline().language)

    assert bool(bent_claims) is found


def test_a_key_states_no_value():
    """A figure in the key of a field names it, and what stands under a year is a count; a changed value of the field is one still."""
    moved = Distortion("NUMBER_CHANGED", "30 cm", "60cm", "f1")
    dated = Distortion("DATE_SHIFTED", "2022", "1790", "f1")

    assert fidelity._is_of_key(moved, "salt 60cm: 4%")
    assert fidelity._is_of_key(dated, "members 2022: 1790")
    assert not fidelity._is_of_key(Distortion("NUMBER_CHANGED", "5%", "4%", "f1"), "salt 60cm: 4%")
    assert not fidelity._is_of_key(Distortion("DATE_SHIFTED", "1791", "1790", "f1"), "founded: 1790")
