"""Words that a claim gives to another speaker than its sources (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.groupings.voices import voices
from interlock.dpe.comparison.replaced.spoken import spoken
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
CHAT = (
    "Support chat\nCustomer Ayo: the fridge hums all night.\nAgent Ines: Please level the feet first.\nAyo: Did that, still hums.\n"
    "Ines: Then I'll book a mechanic for Tuesday."
)
BOARD = "Minutes: Prof. Lund proposed moving the fair to the harbour. Ms Okoro objected because the rent there is high. They will vote in May."
PAPERS = "Harbour master: The ferry left on time, with 80 on board.\nA passenger: The doors closed early and my bags stayed on the quay."
ASKED = "Guest: Is the terrace heated in October?\nHotel Mira: From five every evening.\nGuest: Can dogs sit on the terrace?\nHotel Mira: Yes."
DOCTORS = 'Dr. Amin: Stop the heparin before surgery.\nNurse Fell: The scan is back, "no clot".'


def found(source: str, answer: str) -> Misbinding | None:
    known = voices(source, "f0")
    evidence = Evidence(passages(source, "f0"), (), (), (), () if known is None else (known,))
    return next((each for claim in passages(answer) if (each := spoken(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent", "speaker"),
    [
        (CHAT, "Ines offered to book a mechanic.", "Ayo offered to book a mechanic.", "Agent Ines"),
        (CHAT, "Ayo reported that the fridge hums at night.", "The agent reported that the fridge hums at night.", "Customer Ayo"),
        (BOARD, "It was Lund who suggested moving the fair to the harbour.", "It was Ms Okoro who suggested moving the fair to the harbour.", "Lund"),
        (BOARD, "According to Okoro, the rent is high.", "According to Lund, the rent is high.", "Ms Okoro"),
        (PAPERS, "The passenger claims that the doors closed early.", "The harbour master claims that the doors closed early.", "A passenger"),
        (PAPERS, "The harbour master says that the ferry left on time.", "The passenger says that the ferry left on time.", "Harbour master"),
        (DOCTORS, "Dr Amin gave the order to stop the heparin.", "Nurse Fell gave the order to stop the heparin.", "Dr. Amin"),
    ],
)  # fmt: skip
def test_the_words_of_another_speaker_are_found(source: str, faithful: str, bent: str, speaker: str) -> None:
    """Chats, statements side by side, and reported words in prose."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None
    assert (told.type, told.slot, told.source_value, told.fact_id) == (ENTITY_SUBSTITUTED, "speaker", speaker, "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (ASKED, "The hotel says that the terrace is heated in October."),
        (ASKED, "Hotel Mira says that dogs can sit on the terrace."),
        (CHAT, "Ayo was offered a mechanic by Ines."),
        (CHAT, "Ayo's brother offered to book a mechanic."),
        (CHAT, "Ayo says that a mechanic who was booked never came."),
        (PAPERS, "The passenger does not say that the ferry left on time."),
        (
            "Anna: The bus leaves at 9 from gate 4.\nBen: An hour later.",
            "Ben says that the bus leaves at 10 from gate 4.",
        ),
        (
            "Anna: The bus leaves at 9 from gate 4.\nBen: That's right.",
            "Ben says that the bus leaves at 9 from gate 4.",
        ),
        ("Owner: Ms Lee\nRent: 900, due on Friday", "Ms Lee says that the rent is due on Friday."),
    ],
)
def test_what_a_speaker_may_have_said_is_left_alone(source: str, answer: str) -> None:
    """Answers to a question, what one agrees to, another person, a denial, and what neither says."""
    assert found(source, answer) is None
