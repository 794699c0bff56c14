"""Calculated support: what a record or a calculation bears out, and what it refutes (SPEC-005 §4, §5.2)."""

import re

import numpy as np
import pytest

from interlock.dpe.document import Claim, ClaimType, Fact
from interlock.dpe.grounding.attribution import NOTHING
from interlock.dpe.grounding.envelope import Envelope, cut
from interlock.dpe.grounding.placing.calculated import settle

BOATS = (
    '{"boats": [{"name": "Aurora 7", "sails": "08:15", "lands": "11:45", "fare_eur": 24.5, "dogs": true},'
    ' {"name": "Borealis 3", "sails": "13:00", "lands": "15:20", "fare_eur": 31, "dogs": false},'
    ' {"name": "Corona 5", "sails": "19:10", "lands": "23:55", "fare_eur": 18.5, "dogs": true}]}'
)
YEARS = (
    '{"school": "Hill Road", "year": 2021, "pupils": 640, "budget_keur": 900}',
    '{"school": "Hill Road", "year": 2022, "pupils": 560, "budget_keur": 990}',
)
KILNS = (
    "| Kiln | Firing heat (°C) | Holding heat (°C) | Pots |\n|---|---|---|---|\n| Alma | 1240 | 310 | 40 |\n| Bruno | 1180 | 290 | 64 |\n"
    "| Cleo | 1060 | 270 | 25 |"
)
LEAGUE = "| Club | Goals | Points |\n|---|---|---|\n| Ravens | 58:31 | 64 |\n| Otters | 66:40 | 71 |\n| Badgers | 49:44 | 52 |"
QUARTER = "month,revenue,costs\nJan,120,80\nFeb,135,90\nMar,150,95"
GYM = "A gym pass costs $30 a month. Lockers cost $4 each. The contract runs for 18 months from the day of signing."
VELTRA = (
    '{"company": "Veltra", "year": 2023, "revenue_musd": 412, "operating_income_musd": 61, "net_income_musd": 44, "employees": 1850}',
    '{"company": "Veltra", "year": 2024, "revenue_musd": 480, "operating_income_musd": 84, "net_income_musd": 60, "employees": 2010}',
)
MARGINS = (
    "Operating income went from $61 million on $412 million of revenue in 2023 (a margin of about 14.8%) to $84 million on $480 million in 2024"
    " (17.5%), so the operating margin widened by roughly 2.7 percentage points."
)
STAFF = "Amir has worked at the bakery since 1 August 2015."


def _settled(claim, *sources, own="", others=()):
    def split(text):
        return iter([m.span() for m in re.finditer(r"[^.]+\.?(?:\d[^.]*\.?)*\s*", text)])

    facts = [Fact(f"f{number}", text, 0.5) for number, text in enumerate(sources)]
    units = cut(facts, limit=400, count=lambda texts: [len(text.split()) for text in texts], split=split)
    envelope = Envelope(units, np.zeros((len(units.units), 2)), np.zeros((len(facts), 2)))
    texts = [claim, *others]
    claims = [Claim(f"c{n}", text, n, 0, 0, 1, ClaimType.FACTUAL, 0.5, ()) for n, text in enumerate(texts)]
    evidence = {each.claim_id: NOTHING for each in claims}
    return settle(claims, evidence, envelope, query=own, own=own, sentences={})["c0"]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "sources", "own"),
    [
        ("Aurora 7 sails at 08:15 and lands at 11:45.", (BOATS,), ""),
        ("The Borealis 3 fare is €31.", (BOATS,), ""),
        ("The cheapest is Corona 5 at €18.50.", (BOATS,), ""),
        ("Aurora 7 takes 3 hours and 30 minutes.", (BOATS,), ""),
        ("Aurora 7 takes three and a half hours, €49 in total for two.", (BOATS,), "We are two."),
        ("For three people Corona 5 comes to 3 × €18.50 = €55.50.", (BOATS,), "We are three people."),
        ("Borealis 3; Sails: 13:00; Fare: €31", (BOATS,), ""),
        ("In 2022 Hill Road had 560 pupils.", YEARS, ""),
        ("The budget rose from €900,000 to €990,000, an increase of €90,000 or 10%.", YEARS, ""),
        ("That is a decrease of 80 pupils, or 12.5%.", YEARS, ""),
        ("Budget (€k); 2021: 900; 2022: 990", YEARS, ""),
        (MARGINS, VELTRA, ""),
        ("A gym pass costs $360 a year.", (GYM,), ""),
        ("Lockers cost $4 each, so $12 for three.", (GYM,), ""),
        ("The contract runs until November 2025.", (GYM,), "I signed in May 2024."),
        ("In August 2025 Amir will have worked at the bakery for ten years.", (STAFF,), ""),
    ],
)
def test_borne_out(claim, sources, own):
    """Every value is the record's or follows, and the words are the sources'."""
    found = _settled(claim, *sources, own=own)
    assert found.calculated
    assert found.moved == ()
    assert found.scores.entailment > 0.9


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "sources", "own"),
    [
        ("Aurora 7 takes 4 hours and 30 minutes.", (BOATS,), ""),
        ("For three people Corona 5 comes to 3 × €18.50 = €65.50.", (BOATS,), "We are three people."),
        ("In 2022 the budget fell to €990,000.", YEARS, ""),
        ("That is an increase of 80 pupils, or 12.5%.", YEARS, ""),
        ("A gym pass costs $380 a year.", (GYM,), ""),
        ("Lockers cost $4 each, so $15 for three.", (GYM,), ""),
        ("The contract runs until December 2025.", (GYM,), "I signed in May 2024."),
        ("In August 2025 Amir will have worked at the bakery for twelve years.", (STAFF,), ""),
        ("Lockers do not cost $4 each, so $12 for three.", (GYM,), ""),
        ("Surgeons in Geneva bought submarine lockers at $4 each, so $12 for three.", (GYM,), ""),
        ("The gym has 40 trainers.", (GYM,), ""),
        ("Aurora 7 lands at 08:15.", (BOATS,), ""),
        ("Aurora 7 sails at 11:45 and lands at 08:15.", (BOATS,), ""),
    ],
)
def test_not_borne_out(claim, sources, own):
    """A wrong result, direction or negation, and words that no source has, are left to the models."""
    found = _settled(claim, *sources, own=own)
    assert not found.calculated
    assert found.scores == NOTHING.scores


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "sources", "source_value", "claim_value"),
    [
        ("Aurora 7 sails at 13:00.", (BOATS,), "08:15", "13:00"),
        ("The Borealis 3 fare is €24.50.", (BOATS,), "€31", "€24.50"),
        ("The cheapest is Borealis 3 at €31.", (BOATS,), "€18.50", "€31"),
        ("The cheapest is Borealis 3 at €29.", (BOATS,), "€31", "€29"),
        ("Borealis 3 takes dogs for €31.", (BOATS,), "no", "dogs"),
        ("In 2022 Hill Road had 640 pupils.", YEARS, "560", "640"),
        # a unit in a column's header, and a value that stands in one column only, whatever the claim calls it
        ("Bruno is left at 310 °C overnight.", (KILNS,), "290 °C", "310 °C"),
        # names and values that take turns
        ("Bruno holds 64 pots, followed by Alma with 25.", (KILNS,), "40", "25"),
        # a number of another field before the noun of one
        ("Otters finished with 66 points.", (LEAGUE,), "71", "66"),
        ("Budget (€k); 2021: 990; 2022: 900", YEARS, "€900 thousand", "990"),
        # what a column comes to
        ("Total revenue was 415.", (QUARTER,), "405", "415"),
        ("Costs came to 275 altogether.", (QUARTER,), "265", "275"),
        ("Average costs were 91.", (QUARTER,), "88.3333", "91"),
    ],
)
def test_the_value_of_another_record_is_a_finding(claim, sources, source_value, claim_value):
    """It names what the record itself states."""
    found = _settled(claim, *sources)
    assert not found.calculated
    assert (source_value, claim_value) in [(each.source_value, each.claim_value) for each in found.moved]
    assert found.plain_scores.contradiction > 0.75


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    "claim",
    [
        "Total revenue was 405.", "Average costs were 88.3.", "Average costs were about 88.", "Total revenue from January to February was 255.",
        "Total revenue in February was 135.", "Revenue and costs differ by 140 in total.", "Total profit was 140.",
    ],
)  # fmt: skip
def test_what_is_no_total_of_a_column_or_the_right_one_is_left(claim):
    """A part of the rows, two columns, another noun."""
    assert _settled(claim, QUARTER).moved == ()


@pytest.mark.req("ATT-5")
def test_a_total_of_rows_that_are_named_is_none_of_the_column():
    """Also where one is named for several: a chair, chairs."""
    shop = "item,price\nchairs,120\ntables,310\nlamps,45.5"

    assert _settled("The combined price of a chair and a lamp is 165.50.", shop).moved == ()
    assert [each.source_value for each in _settled("The combined price is 465.50.", shop).moved] == ["475.5"]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "sources"),
    [
        ("In 2022 the budget rose from €900,000 to €990,000.", YEARS),
        ("In 2022 there were 560 pupils, in the year before 640.", YEARS),
        ("The cheapest before noon is Aurora 7 at €24.50.", (BOATS,)),
        ("One of the cheapest is Aurora 7 at €24.50.", (BOATS,)),
        ("The second cheapest is Aurora 7 at €24.50.", (BOATS,)),
        ("The shortest is Borealis 3 at €31.", (BOATS,)),
        ("Borealis 3 takes no dogs.", (BOATS,)),
        ("Bruno is left at 290 °C overnight.", (KILNS,)),
        ("Bruno is left at 310 °C overnight.", (KILNS, "A kiln that rests is kept at 310 °C.")),
        ("Bruno holds 64 pots, followed by Alma with 40.", (KILNS,)),
        ("Alma and Bruno hold 40 and 64 pots.", (KILNS,)),
        ("Otters finished with 71 points and 66 goals.", (LEAGUE,)),
        ("Otters finished 7 points ahead of Ravens.", (LEAGUE,)),
    ],
)
def test_what_compares_or_narrows_takes_nothing_from_another_record(claim, sources):
    """A value of a sibling may stand beside the record's own."""
    assert _settled(claim, *sources).moved == ()


@pytest.mark.req("ATT-5")
def test_the_fields_of_an_object_tell_its_record():
    """``year: 2022`` beside it says whose pupils they are."""
    right = _settled("pupils: 560", *YEARS, others=("year: 2022",))
    wrong = _settled("pupils: 640", *YEARS, others=("year: 2022",))
    assert right.calculated
    assert [each.source_value for each in wrong.moved] == ["560"]
