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
        ("Callers without a key count as one, as no name is set.", "en"),
        ("A summary costs tokens but no safety budget", None),
    ],
)
def test_function_words_and_script_tell_the_language(text: str, expected: str | None):
    """Too few words do not tell."""
    assert tongue(text) == expected


HOURS = "The studio is open on Sundays from 08:00 to 20:00. The oven is set to 350 °F. The fee is 45 euros."


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Le dimanche, le studio est ouvert de 8 h à 20 h.", "Le dimanche, le studio est ouvert de 9 h à 21 h."),
        (
            "Am Sonntag ist das Studio von 8 Uhr bis 20 Uhr offen und es ist warm.",
            "Am Sonntag ist das Studio von 7 Uhr bis 22 Uhr offen und es ist warm.",
        ),
        (
            "Der Ofen ist auf 175 °C (350 °F) gestellt und es ist heiß.",
            "Der Ofen ist auf 215 °C (350 °F) gestellt und es ist heiß.",
        ),
    ],
)
async def test_hours_and_conversions_are_figures_of_any_language(right, wrong):
    """8 h is 08:00, and 350 °F are 175 °C."""
    for answer, flawed in ((right, False), (wrong, True)):
        report = await pipeline().analyse(request(answer, HOURS))
        assert bool(report.fabrication_count) is flawed, answer


@pytest.mark.models
@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(("day", "risk"), [(18, common_pb2.RISK_LEVEL_LOW), (28, common_pb2.RISK_LEVEL_HIGH)])
async def test_a_day_may_follow_from_a_period(day, risk):
    """14 days after 4 May, in the answer's own language; another day is invented."""
    sources = ("Bill 0718 of 4 May 2026, for Lena Hartwig.", "To pay: 194.68 EUR, within 14 days.")
    answer = f"Die Rechnung ist über 194,68 Euro und sie ist bis zum {day}. Mai zahlbar."

    found = (await pipeline().analyse(request(answer, *sources))).risk_level
    assert (found == risk) if day == 18 else (found >= risk)
