"""Offers and refusals in compound form, and facts inside them (ATT-6)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.claims.test_courtesies import checked

pytestmark = pytest.mark.models

OFFERS = (
    "I'm sorry, I can only help with trains and bookings, so I can't recommend a hotel.",
    "I can open a ticket with the technical team if you'd like.",
    "I can, however, summarise the figures or compare them with other years if that helps you decide.",
    "I can't identify wild mushrooms for you.",
    "I can draft the letter for you if you want.",
    "I'm afraid I can't book flights.",
    "I can't predict the weather, but I can explain the forecast if you like.",
    "Sorry, I can only answer questions about your lease.",
    "I can check the status again whenever you're ready.",
    "I can't give legal advice, so I can't tell you what to sign.",
    "I can put this into a table if you prefer.",
    "I'd be happy to rewrite the paragraph if you'd like.",
    "If you'd like, I can send a reminder to the team.",
    "I can't make changes to the account, but I can raise a ticket for you.",
    "I'm unable to process payments.",
    "Bye, and enjoy your omelette!",
    "Have a wonderful trip to Copenhagen.",
    "Thanks, and enjoy your holiday!",
    "I can walk you through the setup step by step.",
    "I won't be able to diagnose this.",
    "I can't judge whether the plant is edible; have an expert look at it.",
    "I can only help with the topics in the handbook.",
    "I'm sorry, I can't share other customers' data.",
    "I can look up another date for you if needed.",
    "That's one for a tax adviser.",
    "That is something for your doctor.",
)
FACTS = (
    "That's a discount for the manager.",
    "That's one for each of the 12 doctors.",
    "I can refund the full amount if you'd like.",
    "I can't recommend the drug because it causes cancer.",
    "I can open a ticket, since the server is down.",
    "I can give you a discount if you want.",
    "I can help, and the landlord must pay for the repair.",
    "I can confirm that the order has shipped.",
    "I can see that the invoice was paid.",
    "I can't approve this, the budget is exhausted.",
    "I can explain the fee, which is charged every month.",
    "I can only say that the bridge collapsed.",
    "I can't help, but the store is open on Sundays.",
    "I can send you a free replacement if you'd like.",
    "We can't ship to islands.",
    "I can summarise the merger that failed if you like.",
    "I can book the flight if the visa is refused at the border.",
    "I can tell you the tenant moved out.",
    "I could open the valve, as it is safe.",
    "I can extend the warranty if you'd like.",
    "I can't deny that the company lied.",
    "I can offer a full waiver of the fee if that helps.",
    "I can draft a letter, but pets are forbidden.",
    "I'm sorry, the museum is closed, so I can't sell tickets.",
    "I'm glad that the trial succeeded.",
    "I can list the side effects if you like, and none of them is dangerous.",
)


@pytest.mark.req("ATT-6")
def test_what_the_speaker_can_or_cannot_do_is_no_claim():
    """Several clauses that speak of the speaker alone, a condition that the reader wants it, a wish after a farewell."""
    assert {text: found for text in OFFERS if (found := checked(text))} == {}


@pytest.mark.req("ATT-6")
def test_a_benefit_or_a_fact_in_an_offer_is_still_a_claim():
    """A refund that is promised, a reason that is given, what an order or a tenant did."""
    assert [text for text in FACTS if not checked(text)] == []
