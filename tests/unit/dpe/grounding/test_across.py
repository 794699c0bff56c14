"""Answers in another language than their sources: figures, dates, codes and names are compared, prose is not (ATT-8)."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.text.tongues import tongue
from tests.support.dpe import pipeline, request

SOURCES = (
    "Booking QX-2291-B: two seats in coach 14 on 9 May 2025, departure from Hamburg at 08:15, price 64.50 euros.",
    "The ticket can be refunded until seven days before departure with a fee of 10 euros.",
)
FAITHFUL = (
    "Deine Buchung ist QX-2291-B: zwei Plätze in Wagen 14 am 9. Mai 2025, Abfahrt um 08:15 Uhr.",
    "Der Preis ist 64,50 Euro, und du kannst das Ticket bis sieben Tage vor der Abfahrt zurückgeben.",
    "Votre réservation est QX-2291-B, le départ est le 9 mai 2025 à 08:15 de Hambourg.",
    "Le prix est de 64,50 euros et les frais sont de 10 euros.",
    "Su reserva es QX-2291-B, con salida de Hamburgo el 9 de mayo a las 08:15.",
    "El precio es de 64,50 euros y puede devolver el billete hasta siete días antes de la salida.",
    "La tua prenotazione è QX-2291-B e la partenza è il 9 maggio alle 08:15 da Amburgo.",
)
BENT = (
    "Deine Buchung ist QX-2991-B: zwei Plätze in Wagen 14 am 9. Mai 2025, Abfahrt um 08:15 Uhr.",
    "Die Abfahrt ist am 9. Mai um 18:50 Uhr, der Preis ist 64,50 Euro.",
    "Die Reise ist am 9. August 2025 und die Plätze sind in Wagen 14.",
    "Le prix est de 46,50 euros et les frais sont de 10 euros.",
    "Votre réservation est QX-2291-B, le départ est le 9 mai 2025 à 09:45 de Hambourg.",
    "El precio es de 64,50 euros y puede devolver el billete hasta doce días antes de la salida.",
    "Le prix est de 64,50 euros et le contact est Bertrand Lefèvre.",
    "La partenza è il 19 maggio alle 08:15 da Amburgo e il prezzo è di 64,50 euro.",
)
PROSE = "Die Fahrkarte ist leider verloren und der Zug ist nicht mehr in dem Bahnhof, weil die Strecke gesperrt ist."


async def judged(answer: str, **more: object) -> dpe_pb2.Report:
    return await pipeline().analyse(request(answer, *SOURCES, **more))


@pytest.mark.models
@pytest.mark.req("ATT-8")
async def test_a_faithful_translation_is_left_alone():
    """German, French, Spanish and Italian over English sources, with their own commas, months and number words."""
    risks = {answer: (await judged(answer)).risk_level for answer in FAITHFUL}

    assert {answer: risk for answer, risk in risks.items() if risk > common_pb2.RISK_LEVEL_LOW} == {}


@pytest.mark.models
@pytest.mark.req("ATT-8")
async def test_a_wrong_value_in_another_language_is_high():
    """A changed code, time, month, amount, count or day."""
    reports = {answer: await judged(answer) for answer in BENT}

    assert [answer for answer, found in reports.items() if found.risk_level < common_pb2.RISK_LEVEL_HIGH] == []
    assert [answer for answer, found in reports.items() if not found.fabricated_entities] == []


@pytest.mark.models
@pytest.mark.req("ATT-8")
async def test_prose_that_no_model_can_read_is_medium_at_most():
    """Nothing in it can be compared: it is not LOW, and not stopped for its language."""
    found = await judged(PROSE)

    assert (found.risk_level, list(found.floors)) == (common_pb2.RISK_LEVEL_MEDIUM, ["UNREAD_LANGUAGE"])


@pytest.mark.models
@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    "more", [{"grounding_mode": GroundingMode.STRICT}, {"grounding_required": True}], ids=["strict", "required"]
)
async def test_a_stricter_mode_measures_every_language(more: dict[str, object]):
    """Where grounding is required, what cannot be judged has no basis."""
    assert (await judged(PROSE, **more)).risk_level >= common_pb2.RISK_LEVEL_HIGH


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The train leaves at noon and arrives in the evening.", "en"),
        ("Der Zug fährt um zwölf und ist am Abend da.", "de"),
        ("Le train part à midi et il arrive dans la soirée.", "fr"),
        ("El tren sale a mediodía y llega por la tarde.", "es"),
        ("Il treno parte a mezzogiorno e arriva nella sera.", "it"),
        ("Поезд отправляется в полдень.", "cyrillic"),
        ("Revenue 2024: 480", None),
    ],
)
def test_function_words_and_script_tell_the_language(text: str, expected: str | None):
    """Too few words do not tell."""
    assert tongue(text) == expected
