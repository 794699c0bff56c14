"""What a claim certainly says otherwise than its source (SPEC-005 §5.3), and what it does not."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.value_conflicts import conflicts

NUMBER_CHANGED = [
    ("Staff get 28 days of paid vacation.", "Staff get 25 paid vacation days."),
    ("Pay within 30 days.", "Pay within 14 calendar days."),
    ("revenue was $4.2M", "revenue was $4.8M"),  # §5.3
    ("Revenue increased by 15% in Q3 2025.", "Revenue increased by 25% in Q3 2025."),  # TV-011
    ("The council has 27 members.", "The council has 28 members."),
    ("Each tablet holds 500 mg of the drug.", "Each tablet contains 250 mg of the drug."),
    ("The bridge is 1,280 metres long.", "The bridge is 1,820 metres long."),
    ("Unemployment stood at 5.4 percent in March.", "In March, unemployment stood at 4.5 percent."),
    ("The fund manages €3.1 billion for its clients.", "The fund manages €3.7 billion for its clients."),
    ("Twelve people were injured in the fire.", "Fourteen people were injured in the fire."),
    ("The vaccine is stored at -70 °C.", "The vaccine is stored at -20 °C."),
    ("Article 22 covers automated decisions.", "Article 21 covers automated decisions."),
    ("The server needs 16 GB of memory.", "The server needs 64 GB of memory."),
    ("The warranty lasts two years.", "The warranty lasts three years."),
    ("Two men came to the village.", "Two hundred men came to the village."),
    ("The plan costs 3 dollars a month.", "The plan costs 3,500 dollars a month."),
]
MAGNITUDE_ALTERED = [
    ("increased by 15%", "increased by 50%"),  # §5.3
    ("The deal is worth 4.2 million dollars.", "The deal is worth 4.2 billion dollars."),
    ("Sales grew by 12% last year.", "Sales grew by 21% last year."),
    ("The mine lies 3 kilometres from the village.", "The mine lies 3 metres from the village."),
    ("The treaty expires in 6 months.", "The treaty expires in 6 years."),
    ("The city has 300,000 inhabitants.", "The city has 3,000,000 inhabitants."),
    ("The file is 40 MB in size.", "The file is 40 GB in size."),
    ("Thousands of people marched in the capital.", "Millions of people marched in the capital."),
    ("The fee is $20 per user.", "The fee is $200 per user."),
    ("Latency fell to 15 ms.", "Latency fell to 51 ms."),
]
DATE_SHIFTED = [
    ("enacted in 2024", "enacted in 2023"),  # §5.3
    ("The treaty was signed on 25 May 2018.", "The treaty was signed on 25 June 2018."),
    ("The meeting takes place on Monday.", "The meeting takes place on Thursday."),
    ("Profit doubled in Q3 2025.", "Profit doubled in Q2 2025."),
    ("The church was built in the 1890s.", "The church was built in the 1950s."),
    ("She was born on May 5, 1976.", "She was born on 15 May 1976."),
    ("The castle dates from the 14th century.", "The castle dates from the 16th century."),
    ("Trading opens at 9:30 am.", "Trading opens at 8:30 am."),
    ("The law entered into force on 2024-08-01.", "The law entered into force on 1 September 2024."),
    ("The company was founded in March 1998.", "The company was founded in March 1989."),
]
ENTITY_SUBSTITUTED = [
    ("according to NIST", "according to ISO"),  # §5.3
    ("According to NIST, the framework is voluntary.", "According to ISO, the framework is voluntary."),
    ("The summit was held in Lisbon in 2019.", "The summit was held in Madrid in 2019."),
    ("Marie Curie discovered polonium in Paris.", "Lise Meitner discovered polonium in Paris."),
    ("The drug was developed by Novartis.", "The drug was developed by Roche."),
    ("The river flows through Vienna and Budapest.", "The river flows through Vienna and Belgrade."),
    ("Germany ratified the agreement first.", "Austria ratified the agreement first."),
    ("The award went to Ishiguro in 2017.", "The award went to Murakami in 2017."),
    ("Oracle acquired Sun Microsystems.", "Oracle acquired Silicon Graphics."),
    ("The trial was led by Dr. Helen Park at Stanford.", "The trial was led by Dr. Alan Reyes at Stanford."),
    ("The prize went to Susan in 2017.", "The prize went to Susie in 2017."),
    ("Ministers Meet Merkel Before Berlin Summit", "Ministers Meet Macron Before Berlin Summit"),
    ("The plant in Va. was closed in May.", "The plant in Nevada was closed in May."),
]
NEGATION_FLIP = [
    ("the policy does not apply", "the policy applies"),  # §5.3
    ("The court approved the merger.", "The court did not approve the merger."),
    ("The regulator approved the merger.", "The regulator rejected the merger."),
    ("Exports rose in the second quarter.", "Exports fell in the second quarter."),
    ("The drug is safe for children.", "The drug is unsafe for children."),
    ("The system never stores passwords.", "The system stores passwords."),
    ("Members are allowed to vote by mail.", "Members are not allowed to vote by mail."),
    ("The bridge opened before the war.", "The bridge opened after the war."),
    ("The tax isn't deductible.", "The tax is deductible."),
    ("The device works without a battery.", "The device works with a battery."),
    ("The members can vote by mail.", "The members can't vote by mail."),
    ("The bridge will be closed.", "The document states that the bridge won't be closed."),
    ("The committee supported the amendment.", "The committee opposed the amendment."),
]
CONTEXT_STRIPPED = [
    ("The site was conditionally approved.", "The site was approved."),
    ("The treatment may reduce the risk of stroke.", "The treatment will reduce the risk of stroke."),
    ("The minister allegedly accepted the gift.", "The minister accepted the gift."),
    ("The merger will probably close in June.", "The merger will close in June."),
    ("The rule applies to some employers in the state.", "The rule applies to all employers in the state."),
    ("Patients usually recover within a week.", "Patients always recover within a week."),
    ("Discounts of up to 40% are offered to members.", "Discounts of 40% are offered to members."),
    ("The results are preliminary and show a benefit.", "The results show a benefit."),
    ("The plan was provisionally adopted by the board.", "The plan was adopted by the board."),
    ("The garden has some great old furniture.", "The garden has all great old furniture."),
    ("The dancers won some early rounds.", "The dancers won early rounds."),
    # said, believed or foreseen, not asserted
    ("The soldiers were said to wear a disguise.", "The soldiers wear a disguise."),
    ("The painting is widely believed to be a forgery.", "The painting is a forgery."),
    ("The debris was reported to be near the junction.", "The debris was near the junction."),
    ("The station is due to open in the spring.", "The station will open in the spring."),
    ("Presumably the engine failed before the crash.", "The engine failed before the crash."),
    ("The driver was charged with causing the accident.", "The driver caused the accident."),
    # what was wanted is not what was done
    ("The firm tried to hide the losses from its owners.", "The firm hid the losses from its owners."),
    ("The airline plans to close two routes to Asia.", "The airline closes two routes to Asia."),
    ("He was jailed for the attempted murder of a guard.", "He was jailed for the murder of a guard."),
    # conditions, reach, office
    ("The grant is paid to farmers unless they own a forest.", "The grant is paid to farmers."),
    ("The merger was approved subject to a review.", "The merger was approved."),
    ("The museum is normally closed to groups on Mondays.", "The museum is closed to groups on Mondays."),
    ("The deputy mayor of the town opened the fair.", "The mayor of the town opened the fair."),
    ("The former director of the bank signed the letter.", "The director of the bank signed the letter."),
    # beside a short form, and behind words that only introduce
    ("You probably know that it can't be mended.", "You know that it cannot be mended."),
    ("They probably aren't bound by the vote.", "They are not bound by the vote."),
    ("The bridge will probably be closed.", "According to the text, the bridge will be closed."),
]

PARAPHRASES = [
    ("Staff get 28 days of paid vacation.", "Staff get 28 paid vacation days."),
    ("Pay within 30 days.", "Pay within 30 calendar days."),
    ("Take 1 tablet. If needed, take another after at least 6 hours.", "Interval; Adults: at least 6 hours"),
    ("Refund until Friday for a fee of 10 euros, after that none.", "After that there is no refund."),
    (
        "Refund until the day before departure with a fee of 10 euros per person, after that none.",
        "After that there is no refund.",
    ),
    # numbers, amounts and measures in another form
    ("Revenue increased by 15% in Q3 2025.", "In the third quarter of 2025, revenue increased by 15 percent."),
    ("Revenue was $4.2 million.", "Revenue was $4.2M."),
    ("The city has 1,234,567 inhabitants.", "The city has about 1.2 million inhabitants."),
    ("The race covers 42.195 km.", "The race covers 26.2 miles."),
    ("The warranty lasts 24 months.", "The warranty lasts two years."),
    ("Half of the voters abstained.", "50% of the voters abstained."),
    ("Twelve people were injured.", "12 people were injured."),
    ("Between 3 and 5 million homes lost power.", "3-5 million homes lost power."),
    ("The vaccine is stored at -20 °C.", "The vaccine is stored at -4 °F."),
    ("The loss was $(4.2) million.", "The loss was $4.2 million."),
    ("Revenue changed by -5%.", "Revenue fell by 5%."),
    ("More than 5,000 people attended.", "Over 5,000 people attended."),
    ("The share rose from 12.4% to 13.6%.", "The share rose to 13.6% from 12.4%."),
    ("France has 68 million people, Germany 84 million.", "Germany has 84 million people."),
    ("France has 68 million people, Germany 84 million.", "France has 68 million people."),
    ("Costs fell 3% and revenue rose 5%.", "Revenue rose 5%."),
    ("The Act has 113 articles and 13 annexes.", "The Act has 13 annexes."),
    ("It affects around one in 100,000 children.", "It affects around one in 100000 children."),
    ("Water (H2O) makes up about 0 to 4 percent.", "Water makes up about 0 to 4 percent."),
    # dates
    ("The treaty was signed on 25 May 2018.", "The treaty was signed in May 2018."),
    ("It was signed on May 25, 2018.", "It was signed on 25/05/2018."),
    ("It was signed on 2018-05-25.", "It was signed on the 25th of May 2018."),
    ("The church was built in 1895.", "The church was built in the 1890s."),
    ("The castle was built in 1340.", "The castle dates from the 14th century."),
    ("The company was founded in 1990 and went public in 2004.", "The company went public in 2004."),
    ("Profit doubled in Q3 2025.", "Profit doubled in September 2025."),
    ("Trading opens at 9:30 am.", "Trading opens at 09:30."),
    ("The war lasted from 1914 to 1918.", "The war lasted from 1914-18."),
    # names
    ("The National Institute of Standards and Technology published the framework.", "NIST published the framework."),
    ("President Barack Obama signed the bill.", "Obama signed the bill."),
    ("The U.S. joined the pact.", "The United States joined the pact."),
    ("French voters rejected the treaty.", "Voters in France rejected the treaty."),
    ("Dr. Helen Park led the trial.", "The trial was led by Park."),
    ("The Federal Reserve raised rates.", "The Fed raised rates."),
    ("Müller chairs the board.", "Mueller's deputy and Müller chair the board."),
    ("The EU AI Act was adopted in 2024.", "The AI Act was adopted in 2024."),
    ("Timothy Roth stars in the film.", "Tim Roth stars in the film."),
    # polarity and hedges
    ("The policy does not apply to contractors.", "The policy doesn't apply to contractors."),
    ("The company failed to meet its target.", "The company did not meet its target."),
    ("Smoking is prohibited.", "Smoking is not allowed."),
    ("Exports rose in May.", "Exports increased in May."),
    ("The drug, which is not sold in Europe, is effective.", "The drug is effective."),
    ("Without delay, the council approved the plan.", "The council approved the plan."),
    ("The drug may reduce pain.", "The drug might reduce pain."),
    ("The drug may reduce pain.", "The drug could possibly reduce pain."),
    ("The site was conditionally approved.", "The site was approved, subject to conditions."),
    ("Nearly 50% of firms comply.", "About 50% of firms comply."),
    ("The company, which may expand, has 50 stores.", "The company has 50 stores."),
    ("Most members voted yes.", "A majority of members voted yes."),
    ("The minister allegedly accepted the gift.", "The minister reportedly accepted the gift."),
    ("It is possible that rates will rise.", "Rates may rise."),
    ("The station is expected to open in the spring.", "The station may open in the spring."),
    ("The painting is believed to be a forgery.", "The painting is reportedly a forgery."),
    ("The cook put some cheese on the pizza.", "The cook put cheese on the pizza."),
    ("The delay was due to heavy rain.", "Heavy rain caused the delay."),
    ("The book gives the facts provided by the ministry.", "The book gives the facts."),
    ("The deputy mayor Anna Berg opened the fair.", "Anna Berg opened the fair."),
    ("They won't close it before the election.", "They will not close it before the election."),
    ("The tower is 330 metres tall.", "The document states that the tower is 330 metres tall."),
    # as it was cut into words
    ("The owner was given a ten - year ban from keeping animals.", "The owner was given a ten-year ban."),
    ("The fortress lies about 3, 800 km from the capital.", "The fortress lies about 3,800 km from the capital."),
    ("The figure is to rise to 31. 8 million people.", "The figure is to rise to 31.8 million people."),
    # names in another spelling, and words that only a headline gives a capital
    ("Rights Chief Presses Cairo On Mursi Detention", "Rights Chief Presses Cairo On Morsi Detention"),
    ("Seven dead after Fla. apartment shooting", "Seven dead after Florida apartment shooting"),
    ("Ministers Widen Sanctions On Russian Banks", "Ministers Boost Sanctions On Russian Banks"),
    ("Up to 40% of members benefit.", "As many as 40% of members benefit."),
    # a number that counts something else, and a clause that the claim leaves out
    (
        "The forward scored a brace in his side's 3 - 1 win over the visitors.",
        "The forward scored a brace in his last 11 games.",
    ),
    (
        "The doctor says that the rider needs rest but won't be operated on.",
        "The doctor says that the rider needs rest.",
    ),
    # another statement altogether
    ("France has 68 million people, Germany 84 million.", "Italy has 59 million people."),
    ("The company was founded in 1990.", "The company was sold in 2012."),
    ("Revenue was $4.2M in 2023.", "Revenue was $4.8M in 2024."),
    ("The Paris office has 40 employees.", "The Rome office has 25 employees."),
    (
        "The population of France is about 68 million people today.",
        "The population of Kenya is about 55 million people today.",
    ),
]


def types(source: str, claim: str) -> set[str]:
    return {conflict.type for conflict in conflicts(claim, source)}


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("source", "claim"), NUMBER_CHANGED)
def test_a_changed_number_is_named(source, claim):
    """Another figure in the place of the source's is NUMBER_CHANGED."""
    assert "NUMBER_CHANGED" in types(source, claim)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("source", "claim"), MAGNITUDE_ALTERED)
def test_an_altered_magnitude_is_named_beside_the_number(source, claim):
    """A figure that at least doubled, lost its scale or swapped its digits is MAGNITUDE_ALTERED too."""
    assert types(source, claim) >= {"NUMBER_CHANGED", "MAGNITUDE_ALTERED"}


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("source", "claim"), DATE_SHIFTED)
def test_a_shifted_date_is_named(source, claim):
    """Another date in the place of the source's is DATE_SHIFTED."""
    assert types(source, claim) == {"DATE_SHIFTED"}


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("source", "claim"), ENTITY_SUBSTITUTED)
def test_a_substituted_name_is_named(source, claim):
    """Another name in the place of the source's is ENTITY_SUBSTITUTED."""
    assert types(source, claim) == {"ENTITY_SUBSTITUTED"}


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("source", "claim"), NEGATION_FLIP)
def test_a_turned_sense_is_named(source, claim):
    """A copy with a negation or an opposite word more or less is NEGATION_FLIP."""
    assert "NEGATION_FLIP" in types(source, claim)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("source", "claim"), CONTEXT_STRIPPED)
def test_a_dropped_limit_is_named(source, claim):
    """A copy without the limit that its source states is CONTEXT_STRIPPED."""
    assert "CONTEXT_STRIPPED" in types(source, claim)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("source", "claim"), PARAPHRASES)
def test_a_faithful_claim_is_not_accused(source, claim):
    """A claim that keeps its source's meaning, or speaks of something else, conflicts with nothing."""
    assert conflicts(claim, source) == ()


@pytest.mark.req("DPE-3")
def test_a_conflict_shows_both_sides_as_they_are_written():
    """A conflict quotes the source's value and the claim's."""
    found = conflicts("Revenue was $4.8M.", "Revenue was US$4.2 million.")

    assert [(each.source_value, each.claim_value) for each in found] == [("US$4.2 million", "$4.8M")]


@pytest.mark.req("DPE-3")
def test_one_changed_value_among_many_is_the_only_conflict():
    """The values that a claim keeps are not accused beside the one that it changed."""
    source = "In 2023 the plant employed 120 people, made 4.2 million parts and cost €30 million."
    claim = "In 2023 the plant employed 120 people, made 4.9 million parts and cost €30 million."

    assert [(each.source_value, each.claim_value) for each in conflicts(claim, source)] == [
        ("4.2 million", "4.9 million")
    ]


@pytest.mark.req("DPE-3")
def test_the_case_that_the_claim_speaks_of_is_compared():
    """Of two years in a source, the claim's own is the one that it is held to."""
    source = "Revenue was $4.2M in 2023. Revenue was $4.8M in 2024."

    assert [each.source_value for each in conflicts("Revenue was $4.5M in 2024.", source)] == ["$4.8M"]


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "claim", "found"),
    [
        ("She is seen at home in Harlow, Essex, Sunday, after the boat sank in the Solent.", "She is seen at home in May 1981, after the boat sank in the Solent.", False),
        ("She is seen at home in Harlow, Sunday, after the boat sank in the Solent.", "She is seen at home in Epping, Sunday, after the boat sank in the Solent.", True),
    ],
)  # fmt: skip
def test_a_date_stands_in_the_place_of_no_name_that_has_its_own_date(source: str, claim: str, found: bool) -> None:
    """A place and a weekday are not replaced by a month; a place is by a place."""
    assert ("ENTITY_SUBSTITUTED" in types(source, claim)) is found
