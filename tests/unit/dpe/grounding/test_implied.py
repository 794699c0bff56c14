"""Values that wording implies: right ones are borne out, and their bent twins are not (ATT-5, SPEC-005 §5.2)."""

from __future__ import annotations

import re

import numpy as np
import pytest

from interlock.dpe.document import Claim, ClaimType, Fact
from interlock.dpe.grounding.attribution import NOTHING, ClaimEvidence
from interlock.dpe.grounding.envelope import Envelope, cut
from interlock.dpe.grounding.placing.calculated import settle

CASES = [
    # claim, right value, bent value, sources
    ("Each quarterly instalment is {}.", "£60,000", "£80,000", ["The rent is £240,000 a year, in four equal quarterly instalments."]),
    ("The deposit equals {} rent.", "one and a half months'", "two months'", ["The rent is £900 per month.", "The deposit is £1,350."]),
    ("The bonus is {} pay.", "two weeks'", "three weeks'", ["The pay is $700 per week.", "The bonus is $1,400."]),
    ("Eight weeks before 1 September is {}.", "7 July", "14 July", ["Give notice eight weeks before.", "It ends on 1 September."]),
    ("She has {} left.", "14 days", "16 days", ["She has 28 days and carried over 3 days.", "She took 12 days and booked 5 days."]),
    ("{} seats are left.", "35", "40", ["The hall has 80 seats. Of these 30 seats are sold and 15 seats are reserved."]),
    ("{} of the guests were pleased.", "Seven tenths", "Nine tenths", ["Of 200 guests, 140 were pleased."]),
    ("{} guests were not pleased.", "60", "50", ["Of 200 guests, 140 were pleased."]),
    ("{} seats are reserved.", "30", "40", ["A third of the 90 seats are reserved."]),
    ("{} of the members voted.", "27", "37", ["30% of the 90 members voted."]),
    ("All but {} of the members agreed.", "two", "five", ["Sixteen of the 18 members agreed."]),
    ("The crate holds {} as many eggs as the box.", "four times", "six times", ["The crate holds 48 eggs.", "The box holds 12 eggs."]),
    ("With VAT the total is {}.", "€238", "€248", ["The invoice is for €200 plus 19% VAT."]),
    ("You pay {} in the sale.", "€160", "€150", ["The coat costs €200, and 20% off in the sale."]),
    ("The pump delivers {} per hour.", "1,800 litres", "1,500 litres", ["The pump delivers 30 litres per minute."]),
    ("The fee is {} a year.", "$1,200", "$1,400", ["The fee is $100 per month."]),
    ("She became a judge at the age of {}.", "35", "45", ["She was born on 12 May 1980.", "She became a judge in June 2015."]),
    ("The trip takes {}.", "3 hours and 25 minutes", "4 hours and 25 minutes", ["The bus leaves at 9:40 and arrives at 13:05."]),
    ("The shift lasts {}.", "eight and a half hours", "nine and a half hours", ["The shift runs from 22:00 to 06:30."]),
    ("The lease runs for {}.", "two years", "three years", ["The lease runs from 1 April 2024 to 31 March 2026."]),
    ("The smallest pack holds {} tablets.", "10", "20", ["There are packs of 10, 20 and 50 tablets."]),
    ("The largest screen is {}.", "32 inches", "24 inches", ["There are screens of 19 inches, 24 inches and 32 inches."]),
    ("The waits are 0.2 + 0.4 + 0.8 = {}.", "1.4 seconds", "1.8 seconds", ["The first of the waits is 0.2 seconds, then it doubles."]),
    ("There are {} rooms.", "72", "78", ["The hotel has 3 floors with 24 rooms each."]),
    ("The lessons take {} in total.", "9 hours", "8 hours", ["The course has 12 lessons of 45 minutes."]),
    ("Ana is {} older than Ben.", "three years", "four years", ["Ana is 12 years old.", "Ben is 9 years old."]),
    ("Ben is three years {} than Ana.", "younger", "older", ["Ana is 12 years old.", "Ben is 9 years old."]),
    ("For 8 people you need {} of flour.", "500 g", "600 g", ["The recipe needs 250 g of flour for 4 people.", "We are 8 people."]),
    ("She needed {} per kilometre.", "5 minutes", "6 minutes", ["She ran 10 km in 50 minutes."]),
    ("Her speed was {}.", "12 km/h", "15 km/h", ["She ran 10 km in 50 minutes."]),
    ("The town grew by {}.", "25%", "35%", ["The town had 8,000 people in 2010 and 10,000 in 2020."]),
    ("The town {} by 2,000.", "grew", "shrank", ["The town had 8,000 people in 2010 and 10,000 in 2020."]),
    ("{} of the voters did not agree.", "A third", "A quarter", ["Two thirds of the voters agreed."]),
    ("3 × €15 = {} for the seats.", "€45", "€55", ["Seats cost €15 each. We want 3 seats."]),
]  # fmt: skip


def _settled(claim: str, sources: list[str]) -> ClaimEvidence:
    def split(text):
        return iter([m.span() for m in re.finditer(r"[^.]+\.?(?:\d[^.]*\.?)*\s*", text)])

    facts = [Fact(f"f{number}", text, 0.5) for number, text in enumerate(sources)]
    units = cut(facts, limit=400, count=lambda texts: [len(text.split()) for text in texts], split=split)
    envelope = Envelope(units, np.zeros((len(units.units), 2)), np.zeros((len(facts), 2)))
    made = Claim("c0", claim, 0, 0, 0, 1, ClaimType.FACTUAL, 0.5, ())
    return settle([made], {"c0": NOTHING}, envelope, query="", own="", sentences={})["c0"]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(("claim", "right", "bent", "sources"), CASES)
def test_a_right_value_is_borne_out_and_a_bent_one_is_not(claim, right, bent, sources):
    """The right value follows from the sources; the same claim with another value is left to those that find it."""
    found = _settled(claim.format(right), sources)
    assert found.calculated
    assert found.moved == ()
    assert not _settled(claim.format(bent), sources).calculated


@pytest.mark.req("ATT-5")
def test_a_date_follows_from_no_amounts():
    """Another year is none that calculation bears out."""
    sources = ["The line was approved on 14 March 2024 and is 9 km long.", "Construction starts in 2026."]
    assert not _settled("Construction starts in 2025.", sources).calculated
