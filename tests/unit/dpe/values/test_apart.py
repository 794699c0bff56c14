"""Time apart: a period between two times of the sources is borne out, and one of another length is not (ATT-5, SPEC-005 §5.2)."""

import pytest

from interlock.dpe.grounding.placing.scopes import of_texts
from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.apart import lies_between


def _follows(claim: str, period: str, sources: list[str]) -> bool:
    reading = read(claim.format(period))
    target = next(each for each in reading.values if period.startswith(each.text))
    return lies_between(target, reading, [each for scope in of_texts(sources, 0) for each in scope.operands])


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "period", "wrong", "sources"),
    [
        ("The vote comes {} later.", "three days", "four days", ["The vote was put off from Tuesday to Friday."]),
        ("The pump was out for {}.", "four days", "five days", ["The pump broke on Friday and was back on Tuesday."]),
        ("Order {} ahead.", "two days", "five days", ["Bread comes on Saturdays, order by Thursday."]),
        ("The kiosk is open {} a week.", "five days", "six days", ["The kiosk is open from Tuesday to Saturday."]),
        ("The fair lasts {}.", "two weeks", "three weeks", ["The fair is on from 4 to 18 August."]),
        ("They stay for {}.", "five nights", "six nights", ["They want a room from 2 to 7 May."]),
        ("The grant is for {}.", "twelve months", "ten months", ["Period: 1 July to 30 June"]),
        ("The road was closed for {}.", "five hours", "four hours", ["A fire closed the road from 9 to 14 on Monday."]),
        ("She has {} more.", "ten days", "twelve days", ["The date is 20 March instead of 10 March."]),
        ("The pay talk is {} after the hearing.", "three months", "two months", ["The hearing is in May.", "The pay talk is in August."]),
        ("The fix came {} after the report.", "nine days", "eight days", ["report: 3 Aug", "fix: 12 Aug", "renewal: 1 Oct"]),
        ("The bus comes in more than {} after his shift.", "two hours", "three hours", ["The bus gets in at 14:20.", "His shift ends at noon."]),
    ],
)  # fmt: skip
def test_a_period_between_two_times(claim, period, wrong, sources):
    """The period fits the times, another one does not."""
    assert _follows(claim, period, sources)
    assert not _follows(claim, wrong, sources)


@pytest.mark.req("ATT-5")
def test_times_that_the_claim_does_not_tell_apart():
    """Of several dates only those that the claim names, or that its source joins, have a period between them."""
    dates = ["rent: 1 Dec", "power: 4 Dec", "salary: 15 Dec"]
    assert _follows("The salary comes {} after the power bill.", "eleven days", dates)
    assert not _follows("The shop shuts for {}.", "eleven days", dates)


@pytest.mark.req("ATT-5")
def test_bare_numbers_that_are_no_hours():
    """From 10 to 14 pupils is no time of day unless something says *from* and the period is one of hours."""
    assert not _follows("It takes {}.", "four days", ["Groups from 10 to 14 have a guide."])
