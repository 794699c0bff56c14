"""What a source denies is not asserted, and what it asserts is not denied, however either is worded (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.worded.asserted import asserted, bears_out
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def _turned(source: str, answer: str, query: str = "") -> list[Misbinding]:
    asked = passages(query) if query else ()
    return [finding for _, finding in asserted(passages(answer), Evidence(passages(source, "f1")), asked)]


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The ferry has no lift.", "The ferry is without a lift.", "The ferry has a lift."),
        ("The hall lacks a fire alarm.", "There is no fire alarm in the hall.", "There is a fire alarm in the hall."),
        ("Dogs are not allowed in the reading room.", "You cannot bring dogs into the reading room.", "Dogs are welcome in the reading room."),
        ("The choir no longer rehearses on Tuesdays.", "The choir has stopped rehearsing on Tuesdays.", "The choir still rehearses on Tuesdays."),
        ("The choir still rehearses in the chapel.", "The choir continues to rehearse in the chapel.", "The choir no longer rehearses in the chapel."),
        ("The council has not yet approved the bridge.", "The council has yet to approve the bridge.", "The council has already approved the bridge."),
        ("The printer failed to start after the update.", "The printer did not start after the update.", "The printer started after the update."),
        ("Neither the museum nor the archive is open on Mondays.", "The museum is closed on Mondays.", "The museum is open on Mondays."),
        ("Neither the chair nor the treasurer attended the meeting.", "The treasurer did not attend the meeting.", "The treasurer attended the meeting."),
        ("Both the chair and the treasurer attended the meeting.", "The chair and the treasurer attended the meeting.", "Neither the chair nor the treasurer attended the meeting."),
        ("All rooms have a balcony except room 7.", "Room 7 has no balcony.", "Room 7 has a balcony."),
        ("The tour includes lunch but not drinks.", "Drinks are not included in the tour.", "Drinks are included in the tour."),
        ("The tour includes lunch but not drinks.", "The tour includes lunch.", "The tour does not include lunch."),
        ("The minister ruled out a tax rise.", "There will be no tax rise, the minister said.", "The minister did not rule out a tax rise."),
        ("None of the climbers was injured.", "No climber was injured.", "Some of the climbers were injured."),
        ("The pump can run without oil.", "The pump does not need oil to run.", "The pump cannot run without oil."),
        ("Passengers cannot change the name on the ticket.", "It is not possible to change the name on the ticket.", "Passengers can change the name on the ticket."),
        ("The bakery stopped selling rye bread in May.", "The bakery no longer sells rye bread.", "The bakery keeps selling rye bread."),
        ("The nurse did not give the patient any morphine.", "The patient received no morphine from the nurse.", "The nurse gave the patient some morphine."),
        ("The tenant need not repaint the walls.", "The tenant does not have to repaint the walls.", "The tenant has to repaint the walls."),
        ("Late applications are rejected.", "Late applications are not accepted.", "Late applications are accepted."),
        ("The orders were cancelled rather than postponed.", "The orders were not postponed; they were cancelled.", "The orders were postponed rather than cancelled."),
        ("The deposit is not refunded if the guest leaves early.", "A guest who leaves early does not get the deposit back.", "The deposit is refunded if the guest leaves early."),
        ("The team managed to save the archive.", "The team saved the archive.", "The team failed to save the archive."),
        ("The court did not hear the second witness.", "The second witness was not heard by the court.", "The court heard the second witness as well."),
        ("The vaccine does not contain egg protein.", "The vaccine is free of egg protein.", "The vaccine contains egg protein."),
        ("The lift was out of service during the concert.", "The lift was not in service during the concert.", "The lift was in service during the concert."),
        ("The company will not close the Leeds plant.", "The Leeds plant will stay open.", "The company will close the Leeds plant."),
        ("The grant covers travel but excludes meals.", "Meals are not covered by the grant.", "The grant covers meals as well."),
        ("The trainee was not paid for the first week.", "The trainee received no pay for the first week.", "The trainee was paid for the first week."),
        ("The heating works even when the power is off.", "The heating keeps working when the power is off.", "The heating does not work when the power is off."),
        ("The road remains closed after the landslide.", "The road is still closed after the landslide.", "The road is no longer closed after the landslide."),
        ("No survivors were found in the wreck.", "Nobody was found alive in the wreck.", "Survivors were found in the wreck."),
        ("The licence cannot be transferred to another farm.", "The licence is not transferable to another farm.", "The licence can be transferred to another farm."),
        ("The bank waived the penalty for the March payment.", "The bank did not charge a penalty for the March payment.", "The bank charged a penalty for the March payment."),
        ("The school forbids phones in class.", "Phones are not allowed in class.", "Phones are allowed in class."),
        ("The museum lends no paintings to private galleries.", "The museum does not lend paintings to private galleries.", "The museum lends paintings to private galleries."),
        ("Farmers may water at night, but not between noon and six.", "Farmers may not water between noon and six.", "Farmers may water between noon and six as well."),
        ("The mayor denied that the pool would close.", "The mayor said that the pool would not close.", "The mayor said that the pool would close."),
        ("Only members can vote; guests cannot.", "Guests cannot vote.", "Guests can vote too."),
        ("The camera does not record sound.", "The camera records no sound.", "The camera also records sound."),
        ("Two of the three samples contained lead; the third did not.", "The third sample contained no lead.", "The third sample contained lead as well."),
        ("The parcel was not insured.", "The parcel travelled without insurance.", "The parcel was insured."),
        ("The shop does not open on public holidays.", "The shop is closed on public holidays.", "The shop opens on public holidays."),
        ("The appeal was rejected.", "The appeal was not allowed.", "The appeal was allowed."),
        ("Guests keep the right to cancel.", "Guests still have the right to cancel.", "Guests lose the right to cancel."),
        ("The report makes no mention of the leak.", "The report does not mention the leak.", "The report mentions the leak."),
        ("The engine never overheated during the test.", "The engine did not overheat during the test.", "The engine overheated during the test."),
        ("It was not the driver who called the police.", "The driver did not call the police.", "The driver called the police."),
        ("The new rules do not apply to boats under 5 metres.", "Boats under 5 metres are exempt from the new rules.", "The new rules also apply to boats under 5 metres."),
        ("Staff have not received the bonus yet.", "Staff are still waiting for the bonus.", "Staff have already received the bonus."),
        ("The seller is not liable for hidden defects.", "The seller bears no liability for hidden defects.", "The seller is liable for hidden defects."),
        ("The driver will not wait for passengers.", "The driver leaves without waiting for passengers.", "The driver will wait for passengers."),
        ("The battery cannot be replaced by the user.", "The user is unable to replace the battery.", "The user can replace the battery."),
        ("The owner may stay in the hall during a viewing but not during the auction.", "The owner may stay in the hall for a viewing, but during the auction he cannot stay there.", "The owner may stay in the hall during a viewing and also during the auction."),
        ("The seeds are not treated with fungicide.", "The seeds have not been treated with any fungicide.", "The seeds have been treated with a fungicide."),
        ("The crew did not find any trace of oil.", "The crew found no trace of oil.", "The crew found a trace of oil."),
        ("The tram does not stop at Mill Lane.", "Mill Lane is not served by the tram; it does not stop there.", "The tram also stops at Mill Lane."),
        ("Nobody over 30 may apply for the grant.", "People over 30 cannot apply for the grant.", "People over 30 may apply for the grant as well."),
        ("Readers must not eat in the archive.", "Eating is forbidden in the archive.", "Readers may eat in the archive."),
        ("The play was performed without an interval.", "The play had no interval.", "The play was performed with an interval."),
        ("The play was performed without an interval.", "There was no interval in the play.", "There was an interval in the play."),
        ("The judge did not find the guard guilty.", "The judge found the guard not guilty.", "The judge found the guard guilty."),
        ("The union rejected the offer.", "The union did not accept the offer.", "The union accepted the offer."),
        ("Fees are not charged for returns.", "There are no fees for returns.", "Fees are charged for returns."),
        ("The clinic does not accept cash.", "Cash is not accepted at the clinic.", "The clinic takes cash."),
        ("The goalkeeper was hurt, but the striker was not.", "The striker was not hurt.", "The striker was hurt too."),
        ("The editor cut the interview instead of printing it in full.", "The editor did not print the interview in full.", "The editor printed the interview in full."),
        ("Volunteers, unlike staff, do not get a uniform.", "Volunteers get no uniform.", "Volunteers get a uniform."),
        ("The archive could not be saved.", "It was impossible to save the archive.", "The archive was saved."),
        ("The archive could not be saved.", "The archive was not saved.", "The archive could be saved."),
        ("The drones are unable to fly in rain.", "The drones cannot fly in rain.", "The drones can fly in rain."),
        ("The treaty failed to win a majority.", "The treaty did not win a majority.", "The treaty won a majority."),
        ("Refunds are not paid after 30 June.", "No refunds are paid after 30 June.", "Refunds are paid after 30 June."),
        ("The cabin sleeps four and has no shower.", "The cabin does not have a shower.", "The cabin comes with a shower."),
        ("Anna Berg did not vote for the budget.", "Anna Berg voted against the budget.", "Anna Berg voted for the budget."),
        ("The ferry does not run on Sundays.", "The ferry runs on Mondays.", "The ferry runs on Sundays."),
        ("The ferry does not run on Sundays.", "On Saturdays the ferry runs twice.", "On Sundays the ferry runs twice."),
        ("Business guests get breakfast; economy guests do not.", "Business guests get breakfast.", "Economy guests get breakfast."),
        ("The alarm did not go off during the fire.", "The alarm stayed silent during the fire.", "The alarm went off during the fire."),
        ("The director has not resigned.", "The director is still in office.", "The director has resigned."),
        ("The pool was closed in July. It reopened in August.", "The pool reopened in August.", "The pool was not closed in July."),
        ("Cyclists are not exempt from the toll.", "Cyclists have to pay the toll.", "Cyclists are exempt from the toll."),
        ("Without a permit, fishing is not allowed.", "Fishing is allowed only with a permit.", "Fishing is allowed even without a permit."),
        ("The vendor supplies the pump but not the filters.", "The filters are not supplied by the vendor.", "The vendor supplies the pump and the filters."),
        ("The pain did not return after the treatment.", "The pain stayed away after the treatment.", "The pain returned after the treatment."),
    ],
)  # fmt: skip
def test_a_turned_assertion_is_found(source: str, faithful: str, bent: str) -> None:
    """The finding names what the source says; the same in other words is left."""
    findings = _turned(source, bent)
    assert [NEGATION_FLIP] == [each.type for each in findings]
    assert findings[0].source_value and findings[0].claim_value and findings[0].evidence in source
    assert not _turned(source, faithful)


@pytest.mark.parametrize(
    ("source", "faithful", "bent", "query"),
    [
        ("The society will not appeal against the ruling.", "No, it will not.", "Yes. The society will appeal against the ruling.", "Will the society appeal against the ruling?"),
        ("The society will not appeal against the ruling.", "No. The society accepts it.", "Yes. The lawyers are working on it.", "Will the society appeal against the ruling?"),
        ("Visitors must leave their bags at the desk.", "Yes. There is a desk for them.", "No. There is room upstairs.", "Must visitors leave their bags at the desk?"),
        ("The tower can be climbed in winter.", "Yes. It is open all year.", "No, I'm afraid not.", "Can the tower be climbed in winter?"),
        ("The kiln is not fired on Fridays.", "No. On Fridays it is cleaned.", "Yes, as a rule.", "Is the kiln fired on Fridays?"),
    ],
)  # fmt: skip
def test_yes_and_no_are_read_with_the_question(source: str, faithful: str, bent: str, query: str) -> None:
    """*Yes* asserts what was asked and *No* denies it."""
    assert _turned(source, bent, query)
    assert not _turned(source, faithful, query)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The ferry has no lift.", "The ferry lacks a lift."),
        ("The witness refused to name the buyer.", "The witness would not name the buyer."),
        ("Children under six do not need a ticket.", "No ticket is needed for children under six."),
        ("The app does not store passwords.", "Passwords are never stored by the app."),
        ("The results were not published until May.", "The results were published in May."),
        ("The dam does not leak.", "The dam holds without leaking."),
        ("Are lockers free? The lockers cost nothing.", "No charge is made for the lockers."),
        ("The second reactor never went into service.", "The second reactor did not go into service."),
        ("Pears keep without cooling; figs do not.", "Figs do not keep without cooling."),
        ("Bookings are only possible by phone.", "Bookings are possible by phone."),
        ("The report will not be published before June.", "The report will be published in June."),
        ("Anna Berg did not vote for the budget.", "Anna Berg voted against the budget."),
        ("The ferry does not run on Sundays.", "The ferry runs on Mondays."),
        ("Trade guests get a discount; private guests do not.", "Trade guests get a discount."),
        ("The lane was closed in July. The lane reopened in August.", "The lane reopened in August."),
        ("The gate does not open until nine.", "The gate opens at nine."),
        ("The bid was dropped by the yard.", "The bid of the yard was praised."),
        ("No data was lost in the fire.", "Data was copied after the fire."),
        ("Deliveries are not made after 6 p.m.", "Deliveries are made before noon."),
        ("Songs are sung at the spring fair, except the anthem, which is sung in autumn.", "The anthem is sung in autumn."),
        ("The hut is not heated unless it freezes.", "The hut is heated when it freezes."),
        ("The mayor did not say that the pool would close.", "The pool will close."),
        ("The shop dropped the fee of 9 EUR.", "The shop no longer charges the fee of 9 EUR."),
        ("The brown bear is not hunted here.", "The black bear is hunted here."),
        ("The canal froze in 2012 and has not frozen since.", "The canal froze in 2012."),
        ("Members pay no entry fee, but they must book ahead.", "Members must book ahead."),
        ("The pool is closed for repairs. The sauna is open.", "The sauna is open."),
        ("Parking is free on Sundays; on other days it costs 2 EUR.", "Parking is not free on weekdays."),
        ("The vaccine is given to adults only.", "Children are not given the vaccine."),
        ("The museum did not buy the painting; it was a gift.", "The museum got the painting as a gift."),
        ("The director, who did not attend, sent a letter.", "The director sent a letter."),
        ("Not all samples were tested.", "Some samples were tested."),
        ("Not every guest got a room.", "Some guests got a room."),
        ("Only two of the ten wells were not polluted.", "Eight of the ten wells were polluted."),
        ("The bridge cannot be used by lorries over 12 tonnes.", "Cars can use the bridge."),
        ("The bridge cannot be used by lorries over 12 tonnes.", "Lorries of 10 tonnes can use the bridge."),
        ("No one under 16 is admitted without an adult.", "Children under 16 are admitted with an adult."),
        ("The shop does not sell tickets at the weekend.", "Tickets are sold from Monday to Friday."),
        ("The patient stopped taking aspirin before the operation.", "The patient took aspirin until shortly before the operation."),
        ("The warranty does not cover wear. It covers defects.", "Defects are covered by the warranty."),
        ("The train did not stop at Lund because of a strike.", "Because of a strike the train passed Lund without stopping."),
        ("He refused the first offer and accepted the second.", "He accepted the second offer."),
        ("The committee rejected the plan at first but approved it in May.", "The committee approved the plan in May."),
        ("The lake has not been safe since 2019.", "Until 2019 the lake was safe."),
        ("The lake has not been safe since 2019.", "The lake was safe in 2018."),
        ("If the seal is broken, the item cannot be returned.", "The item can be returned if the seal is intact."),
        ("Items whose seal is broken cannot be returned.", "Items can be returned as long as the seal is not broken."),
        ("Unless you cancel by Friday, the full price is due.", "If you cancel by Friday, the full price is not due."),
        ("Pets are not allowed, except guide dogs.", "Guide dogs are allowed."),
        ("Pets are not allowed, except guide dogs.", "Except for guide dogs, pets are not allowed."),
        ("The mayor was not told until Monday.", "The mayor was told on Monday."),
        ("The mayor was not told until Monday.", "On Monday the mayor was told."),
        ("The bakery does not open before seven.", "The bakery opens at seven."),
        ("There was no rain in May, but June was wet.", "It rained in June."),
        ("The red team did not win a match; the blue team won three.", "The blue team won three matches."),
        ("The guide does not speak Danish, but her colleague does.", "Her colleague speaks Danish."),
        ("The old lift had no alarm. The new lift has one.", "The new lift has an alarm."),
        ("The trial did not meet its main goal, though pain fell.", "Pain fell in the trial."),
        ("Tea is not served in the hall. It is served in the garden.", "Tea is served in the garden."),
        ("Neither side won the case.", "The case ended in a draw."),
        ("The fund will not invest in coal any more.", "The fund used to invest in coal."),
        ("The fund will not invest in coal any more.", "Until now the fund has invested in coal."),
        ("The dog did not bite the boy; it bit the postman.", "The dog bit the postman."),
        ("The firm failed to deliver in March and delivered in April.", "The firm delivered in April."),
        ("You do not have to register, but you may.", "You may register."),
        ("The road is closed to lorries.", "The road is open to cars."),
        ("The road is closed to lorries.", "Cars can still use the road."),
        ("The tax does not apply to bread.", "The tax applies to cakes."),
        ("Without a reservation you cannot enter.", "With a reservation you can enter."),
        ("The parcels were not stolen but misplaced.", "The parcels were misplaced."),
        ("It is not true that the dam leaked.", "The dam did not leak."),
        ("The school no longer teaches Latin; it teaches Greek.", "The school teaches Greek."),
        ("The inspector found no fault with the brakes, but the tyres were worn.", "The inspector found worn tyres."),
        ("The inspector found no fault with the brakes, but the tyres were worn.", "The inspector found a fault with the tyres."),
        ("The meeting was not cancelled. It was moved to Tuesday.", "The meeting was moved to Tuesday."),
        ("The spare key was not in the box but under the mat.", "The spare key was under the mat."),
        ("Nurses cannot prescribe; doctors can.", "Doctors can prescribe."),
        ("The archive is open to students, not to tourists.", "Students may use the archive."),
        ("Guests are not charged for the sauna before 6 p.m.; after that it costs 4 EUR.", "The sauna costs 4 EUR after 6 p.m."),
        ("The lease does not end in May but in June.", "The lease ends in June."),
        ("The author denies copying the plot.", "The author says she did not copy the plot."),
        ("Two of the crew were not hurt.", "Some of the crew were not hurt."),
        ("Two of the crew were not hurt; the third broke an arm.", "One of the crew was hurt."),
        ("The offer lapsed because nobody accepted it.", "The offer lapsed since it was not accepted by anyone."),
        ("Basic plans have no backup. Premium plans have a daily backup.", "A daily backup comes with Premium plans."),
    ],
)  # fmt: skip
def test_what_agrees_or_is_of_something_else_is_left(source: str, claim: str) -> None:
    """Another day, another kind, another case and another wording deny nothing."""
    assert not _turned(source, claim)


def test_a_source_that_says_both_of_two_things_is_read_for_the_nearer() -> None:
    """What another clause says as the claim does, of no less, bears the claim out."""
    source = "Bronze members pay no entry; guests pay entry. Guests of members pay no entry."
    assert not _turned(source, "Guests of members pay no entry.")


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The kiosk takes coins, but neither notes nor cards.", "The kiosk refuses notes as well as cards.", "The kiosk takes notes as well as cards."),
        ("No parcels were lost or opened.", "Parcels were neither lost nor opened.", "Parcels were not lost, but some were opened."),
        ("No nursing posts will be cut; four posts in the canteen will be.", "Not a single nursing post will be cut.", "Some nursing posts will be cut."),
    ],
)  # fmt: skip
def test_a_sentence_that_says_it_as_its_source_does_is_borne_out(source: str, faithful: str, bent: str) -> None:
    """A finding from that very sentence of the source is dropped where the polarity is the same; a turned one stays."""
    evidence = Evidence(passages(source, "f1"))
    (told,), (other,) = passages(faithful), passages(bent)
    for each in (told, other):
        finding = Misbinding(NEGATION_FLIP, "predicate", "one", "other", source, "f1", about=each.content)
        assert bears_out(finding, each, evidence) is (each is told)


def test_a_pronoun_is_read_with_the_sentence_before() -> None:
    """*It* is what the sentence before is about."""
    source = "The deposit is not refunded when the tenant is a student."
    assert _turned(source, "Flats carry a deposit of 400 EUR. It is refunded even when the tenant is a student.")
    assert not _turned(source, "Flats carry a deposit of 400 EUR. It is not refunded when the tenant is a student.")


@pytest.mark.parametrize(
    ("claim", "turned"),
    [
        ("The singer Lou Marsh is 'taking a pause' from touring, following the news the city is banning the much loved drones in public parks.", False),
        ("The city is banning the drones of its own guards in public parks.", True),
    ],
)  # fmt: skip
def test_praise_of_its_own_tells_no_two_things_apart(claim: str, turned: bool) -> None:
    """*Much loved* and *hugely popular* drones are the same unless the contrary clause speaks of the claim's own sort."""
    source = (
        "The singer Lou Marsh is taking a pause from touring, following the news the city is banning the hugely popular drones in public parks. "
        "The city is not banning the drones of its own guards in public parks."
    )

    assert bool(_turned(source, claim)) is turned
