"""Figures, days and names that one more step leads to from what the sources say, and their bent twins (SPEC-005 §5.2, ATT-5)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.document import Fact
from interlock.dpe.grounding.placing.reaches import parts
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.req("DPE-3", "ATT-5"), pytest.mark.models]

BAKERY = (
    "The bakery in Fenton Street opens from 6:00 to 18:00 until the end of May; from 1 June it opens from 7:00 to 17:30.",
    "The last loaves are set aside half an hour before closing.",
)
KILN = (
    "The potter fired the kiln on 11 September and found the crack the following day.",
    "Glaze is mixed by the apprentice, Tove Lund.",
)
CLUB = (
    "The regatta is on Saturday 14 June 2025. Crews must sign up with the harbour office by noon on the preceding Wednesday.",
    "Each crew has up to six rowers.",
)
GRANT = (
    "The council gives the choir 7,200 euros for new robes, half when the order is placed and half on delivery.",
    "The choir meets on Tuesdays.",
)
FERRY_BILL = (
    "The repair of the jetty cost 960 euros, which was split equally between Lund and Aker.",
    "The jetty belongs to the island.",
)
SHEETS = (
    (
        "| Loan | Reader | Book | Due |\n|---|---|---|---|\n| L1 | Adler | Moby-Dick | 3 May 2025 |\n| L2 | Bose | Emma | 9 May 2025 |\n"
        "| L3 | Conti | Dracula | 11 May 2025 |\n| L4 | Diaz | Walden | 12 May 2025 |\n| L5 | Ebert | Middlemarch | 15 May 2025 |\n"
        "| L6 | Foss | Kim | 19 May 2025 |\n| L7 | Gold | Ulysses | 20 May 2025 |"
    ),
)
PUMP = (
    "The pump failed at 14:10; the night crew switched to the spare one at 14:46 and had the leak closed at 15:04.",
    "The pump is four years old.",
)
CAMP = (
    "Scouts arrive on 6 July 2025 and go home on 19 July 2025.",
    "Tents are lent by the parish.",
)
SPA = '{"spa": "Bad Ems", "closed_dates": ["24 Dec", "25 Dec", "31 Dec"], "pool_depth_cm": 135}'
HERD = "The vet may not enclose any part of the meadow. Sheep are moved by the shepherd."
POLL = "Of the 800 tenants asked, 44 percent were for the lift, 38 against, and the rest had no opinion."
NURSERY = "Planting order\nBirch: 120\nAlder: 340\nHazel: 75\nFence: none"
INVOICE = '{"order": "K-31", "net_eur": 415, "vat_eur": 85, "paid": false}'
CLINIC = "Appointment: Dr Sand, ear clinic, 9 October, 10:40. Please come 25 minutes early with your card."
NOTICE = "The road is closed from 4 to 17 March. Trucks heavier than 12 tonnes must use the bypass."
PATCH = "product: Lumen player\naffected_versions: 2.4.0 to 2.6.3\nfixed_version: 2.7.0"
ROTA = (
    "| Guide | Mon 12 May | Tue 13 May | Wed 14 May | Thu 15 May | Fri 16 May | Hours |\n|---|---|---|---|---|---|---|\n"
    "| Sunde | early | late | early | late | off | 31 |\n| Moe | off | late | late | late | early | 33.5 |"
)
CHOIR = ("The festival choir has 240 singers.", "163 singers are for the new hall and 77 are against it.")
FEAST = "Work on feast days is voluntary and is paid at double rate."
KILN_TIME = "The foreman admitted that the drying of the tiles had been cut from 16 to 9 hours for an urgent order."
LATE = "Guests who arrive after 23:00 have to phone the night porter."
BAN = "After a full day without rain the court may be used again."

CASES = [
    # sources, question, right, wrong
    (BAKERY, "", "From 1 June the bakery is open one and a half hours shorter than before.", "From 1 June the bakery is open two and a half hours shorter than before."),
    (KILN, "", "The crack was found on 12 September.", "The crack was found on 15 September."),
    (CLUB, "", "Crews have to sign up with the harbour office by noon on Wednesday 11 June.", "Crews have to sign up with the harbour office by noon on Wednesday 4 June."),
    (GRANT, "", "The choir gets €3,600 when it orders the robes and the other €3,600 on delivery.", "The choir gets €4,100 when it orders the robes and the other €4,100 on delivery."),
    (FERRY_BILL, "", "Lund and Aker each paid half of the repair of the jetty, so 480 euros apiece.", "Lund and Aker each paid half of the repair of the jetty, so 460 euros apiece."),
    (SHEETS, "", "Seven loans fall due between 3 May and 20 May 2025.", "Twenty-six loans fall due between 3 May and 20 May 2025."),
    (PUMP, "How long did it take?", "36 minutes until the spare pump ran, at 14:46, and another 18 until the leak was closed.",
     "36 minutes until the spare pump ran, at 14:46, and another 27 until the leak was closed."),
    (CAMP, "", "The scouts are there for 13 days, coming on 6 July 2025 and going home on the 19th.", "The scouts are there for 13 days, coming on 6 July 2025 and going home on the 17th."),
    ((SPA,), "", "The spa is also closed on Christmas Eve, Christmas Day and New Year's Eve.", "The spa is also closed on Christmas Eve, Christmas Day and New Year's Day."),
    ((POLL,), "", "Eighteen percent of the tenants had no opinion.", "Twelve percent of the tenants had no opinion."),
    ((INVOICE,), "", "The order comes to 500 euros including VAT.", "The order comes to 600 euros including VAT."),
    ((CLINIC,), "", "Be at the ear clinic by a quarter past ten with your card.", "Be at the ear clinic by a quarter to ten with your card."),
    ((PATCH,), "", "Version 2.5.1 is among the affected ones.", "Version 2.8.1 is among the affected ones."),
    ((ROTA,), "", "Sunde works four days in a row.", "Sunde works five days in a row."),
    (CHOIR, "", "Of the 240 singers just over two thirds, 163, are for the new hall.", "Of the 240 singers just over three quarters, 163, are for the new hall."),
    ((FEAST,), "", "Whoever works on a feast day earns twice the usual rate.", "Whoever works on a feast day earns three times the usual rate."),
    ((KILN_TIME,), "", "The foreman admitted that drying had been shortened by seven hours.", "The foreman admitted that drying had been shortened by five hours."),
    ((KILN_TIME,), "", "The tiles dried for nine hours instead of sixteen.", "The tiles dried for nine hours instead of thirteen."),
    ((LATE,), "", "Whoever comes later than eleven at night has to phone the night porter.", "Whoever comes later than eight at night has to phone the night porter."),
    ((BAN,), "", "The court may be used again after twenty-four hours without rain.", "The court may be used again after sixty hours without rain."),
]  # fmt: skip


async def _judged(sources: tuple[str, ...], query: str, text: str):
    facts = tuple(Fact(f"f{n}", source, 0.5) for n, source in enumerate(sources))
    return await pipeline().analyse(Request(outputs=(Output(0, text),), facts=facts, query=query))


@pytest.mark.parametrize(("sources", "query", "right", "wrong"), CASES)
async def test_what_follows_is_left_alone_and_its_wrong_twin_is_not(sources, query, right, wrong):
    """Spans, days told by others, halves, equal shares, rows, elliptic figures, days of a month, holidays, remainders, sums."""
    for text, clean in ((right, True), (wrong, False)):
        assert is_clean(await _judged(sources, query, text)) is clean, text


async def test_a_sum_of_a_list_is_not_invented():
    """*In all* asks for all of it."""
    for text, wrong in (("In all 535 trees are to be planted.", False), ("In all 585 trees are to be planted.", True)):
        report = await _judged((NURSERY,), "", text)
        assert any(one.fabrications for one in report.claims) is wrong


async def test_a_time_may_follow_from_the_sentence_before():
    """*An hour before closing*, and then the time of day."""
    sources = ("The archive is open from 10:00 to 16:45 on weekdays.",)
    said = "Orders are taken until an hour before the archive closes. On weekdays that means {}."

    assert is_clean(await _judged(sources, "", said.format("15:45")))
    assert "15:20" in (await _judged(sources, "", said.format("15:20"))).claims[-1].fabrications


@pytest.mark.parametrize(
    "text",
    [
        "A lorry of 20 tonnes has to take the bypass.",
        "On 10 March nobody can drive through.",
    ],
)
async def test_an_example_of_a_rule_is_not_invented(text):
    """A value on one side of a bound, and a day of a span."""
    report = await _judged((NOTICE,), "", text)

    assert not [each for one in report.claims for each in one.fabrications]


@pytest.mark.parametrize(
    ("text", "figure"),
    [("The road is closed from 4 to 21 March.", "21 March"), ("The bypass has 31 bends.", "31")],
)
async def test_other_figures_beside_a_rule_are_invented(text, figure):
    """The end of a span is no day of it, and a count no example."""
    report = await _judged((NOTICE,), "", text)
    found = [each for one in report.claims for each in one.fabrications]
    found += [each.claim_value for one in report.claims for each in one.distortions]

    assert any(figure in each for each in found)


async def test_a_word_made_of_one_of_the_sources_is_no_name():
    """Whatever the classifier takes *Enclosing* for; a word that nothing there makes is one."""
    report = await _judged((HERD,), "", "Enclosing is ruled out for the vet.")
    assert not [each for one in report.claims for each in one.fabrications]

    report = await _judged((HERD,), "", "Brannigan is ruled out as the vet.")
    assert "Brannigan" in [each for one in report.claims for each in one.fabrications]


async def test_of_a_long_source_a_few_sentences_are_read_for_what_divides_a_figure(monkeypatch):
    """Each costs a reading, and there may be hundreds of figures."""
    read: list[str] = []
    makes = parts._makes
    monkeypatch.setattr(parts, "_makes", lambda line, *rest: read.append(line) or makes(line, *rest))
    source = " ".join(f"The mill sold {n} litres of oil in May and half of that in June." for n in range(100, 400))

    await _judged((source,), "", "The mill sold 7,331 litres of oil in May.")

    assert 0 < len(set(read)) <= 8  # it is asked in rounds
