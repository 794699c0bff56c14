"""Figures that follow from lines which a claim names by a word, and claims in the language of their sources (SPEC-005 §5.2, ATT-8)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.comparison.distinct import distinct
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from interlock.dpe.text.tongues import dates_in_english
from tests.support.dpe import pipeline

pytestmark = pytest.mark.req("DPE-3", "ATT-5")

APPOINTMENT = (
    "Your appointment: MRI on Wednesday 10 June at 8:20, Harbour Street 14. Please arrive 15 minutes early."
    " If you can't come, cancel at least 24 hours before."
)
LETTER = "Patient: Tomasz Wrona, discharged 17 March 2026. Control X-ray in 6 weeks. No sports for two weeks."
PARCEL = '{"events":[{"time":"2026-04-07T18:20","event":"picked up"},{"time":"2026-04-09T07:45","event":"delivered"}]}'
RUN = '{"run":3187,"duration_s":754,"disk_gb":2000}'
GYM = "Monthly fee 29.90 EUR. The sauna costs 6 EUR a visit."
WILL = "My savings are divided equally between my grandchildren Oscar, Tilda and Finn. My piano goes to the school."
TRIP = "Ana paid 240 for the hotel, Ben paid 96 and Cleo paid 54. All three share everything equally."
LISTING = "Listing A: 2 rooms, 58 m2, rent 870 warm, ground floor, no pets, free from 1 June."
TRIAL = "The council voted to close Mill Road to cars from 1 September, for a trial period of one year."
RECHNUNG = (
    "Rechnung vom 22. April 2026. Malerarbeiten für das Wohnzimmer: 38 m² zu 14,50 €. Zahlbar innerhalb von 14 Tagen mit"
    " 2 % Skonto, sonst in 30 Tagen."
)
CORSO = "Il corso di nuoto si tiene il martedì dalle 17:00 alle 17:45. Il costo è di 95 euro per 10 lezioni."
COURSE = "Course: Python for beginners. 8 evenings, Tuesdays 18:30-20:00, starting 5 May 2026. Price 1,240 EUR, students 180 EUR."
CAKE = "Carrot cake (12 pieces)\n300 g carrots\n200 g sugar\nIcing: 200 g cream cheese, 80 g icing sugar."
PARTY = "60 guests invited, 43 have accepted, 9 declined, the rest have not answered."
RACE = "Parkrun results 3 May: 1. Ines Prado 18:42, 2. Jon Beck 18:55, 3. Mira Stolz 19:30. Course 5 km."
FLAGS = "service: checkout\nfeature_flags:\n  new_payment: false\n  gift_cards: true"

CASES = [
    # source, query, right, wrong
    (APPOINTMENT, "Until when can I cancel?", "You can cancel until Tuesday, 9 June at 8:20.", "You can cancel until Sunday, 7 June at 8:20."),
    (LETTER, "When is the X-ray?", "Six weeks after discharge, which is around 28 April 2026.", "Six weeks after discharge, which is around 12 May 2026."),
    (PARCEL, "How long did it take?", "It took about 37 hours until it was delivered.", "It took about 90 hours until it was delivered."),
    (RUN, "How long did it take?", "The run took 12 minutes and 34 seconds.", "The run took 14 minutes and 34 seconds."),
    (RUN, "How big is the disk?", "It has a disk of 2 TB.", "It has a disk of 3 TB."),
    (GYM, "What does a visit to the sauna every week cost in a year?", "The sauna costs 52 × 6 = 312 EUR.", "The sauna costs 51 × 6 = 306 EUR."),
    (WILL, "Who gets the savings?", "Oscar, Tilda and Finn get a third of the savings each.", "Oscar, Tilda and Finn get a quarter of the savings each."),
    (TRIP, "Who owes what?", "The total is 390, so each share is 130.\n\n- Ben paid 96 and still owes 34.\n- Cleo paid 54 and still owes 76.",
     "The total is 390, so each share is 130.\n\n- Ben paid 96 and still owes 39.\n- Cleo paid 54 and still owes 76."),
    (LISTING, "What is the rent?", "Listing A is cheap at 870.", "Listing A is cheap at 780."),
    (TRIAL, "When does it end?", "It starts on 1 September and is meant to last a year, so it would end on 31 August.",
     "It starts on 1 September and is meant to last a year, so it would end on 15 October."),
    (RECHNUNG, "Bis wann muss ich zahlen?", "Mit 2 % Skonto zahlen Sie bis zum 6. Mai 2026.", "Mit 2 % Skonto zahlen Sie bis zum 16. Mai 2026."),
    (RECHNUNG, "When was it written?", "The invoice is dated 22 April 2026.", "The invoice is dated 12 April 2026."),
    (CORSO, "Quanto costa?", "Dieci lezioni costano 95 euro, ogni martedì dalle 17:00 alle 17:45.", "Dieci lezioni costano 105 euro, ogni martedì dalle 17:00 alle 17:45."),
    (COURSE, "When is the last evening?", "With eight Tuesday evenings from 5 May, the last one is on 23 June 2026.",
     "With eight Tuesday evenings from 5 May, the last one is on 26 June 2026."),
    (COURSE, "Résume le prix.", "Le cours coûte 1 240 euros pour une personne, et pour les étudiants 180 euros.",
     "Le cours coûte 1 420 euros pour une personne, et pour les étudiants 180 euros."),
    (CAKE, "Scale it to 18 pieces.", "For 18 pieces, multiply everything by 1.5:\n\n- 450 g carrots\n- 120 g icing sugar",
     "For 18 pieces, multiply everything by 1.5:\n\n- 450 g carrots\n- 135 g icing sugar"),
    (PARTY, "Who has not replied?", "Eight guests haven't replied yet (60 − 43 − 9).", "Thirteen guests haven't replied yet (60 − 43 − 9)."),
    (RACE, "How did they do?", "Ines Prado won in 18:42, 13 seconds ahead of Jon Beck (18:55).", "Ines Prado won in 18:42, 23 seconds ahead of Jon Beck (18:55)."),
    (FLAGS, "Explain it.", "Gift cards are enabled, the new payment flow is still off.", "Gift cards are enabled, the new payment flow is still on."),
    (LETTER, "When may he do sports?", "Two weeks after he was discharged, so from 31 March 2026.", "Two weeks after he was discharged, so from 11 April 2026."),
]  # fmt: skip


@pytest.mark.models
@pytest.mark.parametrize(("source", "query", "right", "wrong"), CASES)
async def test_what_follows_is_left_alone_and_its_wrong_twin_is_not(source, query, right, wrong):
    """A date moved by a period of another line, a field in another unit, a share, a remainder, a date of another language."""
    for text, clean in ((right, True), (wrong, False)):
        request = Request(outputs=(Output(0, text),), facts=(Fact("f", source, 0.5),), query=query)
        assert is_clean(await pipeline().analyse(request)) is clean, text


def test_things_with_other_codes_are_other_things():
    """Two lines arrive at two times; one line does not."""
    one, other = "The S3 arrives at 08:11.", "The X9 is there at 08:08."

    assert distinct(one, other)
    assert not distinct(one, "The S3 is there at 08:08.")


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("vom 22. April 2026, innerhalb von 14 Tagen", ["22 April 2026", "14 days"]),
        ("avant le 30 juin, sous 15 jours", ["30 June", "15 days"]),
        ("del 3 de octubre al 12 de diciembre de 2026", ["3 October", "12 December 2026"]),
        ("31 people came", []),
    ],
)
def test_dates_of_other_languages_are_read(text, dates):
    """Days of a month and periods, as English writes them."""
    assert list(dates_in_english(text)) == dates
