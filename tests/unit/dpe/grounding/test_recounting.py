"""Figures that rows make follow from them, and a wrong total, product, end or conversion stays without a basis."""

from __future__ import annotations

import time

import pytest

from interlock.dpe.grounding.placing.recounting.recount import recounted

ORDER = """{"order": "K-88", "items": [{"part": "hinge", "pieces": 4, "price_each": 3.25},
 {"part": "latch", "pieces": 6, "price_each": 2.40}, {"part": "handle", "pieces": 2, "price_each": 11.75}], "freight": 8.50}"""
QUOTE = """```json
{"items": [{"part": "hinge", "pieces": 4, "sum": 13.00}, {"part": "latch", "pieces": 6, "sum": 14.40},
 {"part": "handle", "pieces": 2, "sum": 23.50}], "goodsTotal": GOODS, "freight": 8.50, "toPay": PAY}
```"""
BEDS = """greenhouse,area_m2,heated,crop
North,120,yes,peppers
South,95,no,salad
West,310,yes,orchids
"""
STAFF = """name,job,hours,wage
Odile Faber,welder,150,21.40
Henk Maris,painter,90,18.60
"""
TICKETS = """ no   | reported         | class  | shop
------+------------------+--------+-------
 7711 | 2025-06-02 09:05 | severe | Delft
 7712 | 2025-06-02 10:40 | minor  | Breda
(2 rows)"""
JOBS = """build:
  limit_min: 12
scan:
  limit_min: 35
"""
LOG = """11:00:05 scan   try 1 broken 4m10s
11:05:00 pack   try 1 fine   2m35s
11:09:00 scan   try 2 fine   3m05s"""
BILL = """branch,april_eur,may_eur,group
Lund,310.20,355.90,retail
Visby,120.10,98.40,retail
Kalmar,84.00,91.25,depot
"""


def follow(texts: str, answer: str, *sources: str) -> set[str]:
    """Return which of the figures follow."""
    return set(recounted(texts.split(), [answer], sources).made)


def test_line_totals_make_the_goods_and_those_with_the_freight_what_is_to_pay():
    """Each round may rest on what the one before showed."""
    right = QUOTE.replace("GOODS", "50.90").replace("PAY", "59.40")

    assert follow("13.00 14.40 23.50 50.90 59.40", right, ORDER) == {"13.00", "14.40", "23.50", "50.90", "59.40"}


@pytest.mark.parametrize(("goods", "pay", "wrong"), [("51.90", "60.40", "51.90"), ("50.90", "67.90", "67.90")])
def test_a_wrong_sum_of_goods_or_to_pay_stays(goods, pay, wrong):
    """A sum that is off by one, and freight that is added twice."""
    answer = QUOTE.replace("GOODS", goods).replace("PAY", pay)

    assert wrong not in follow(f"13.00 14.40 23.50 {goods} {pay}", answer, ORDER)


def test_a_total_without_a_sum_is_firm():
    """Free operations show nothing of what stands under the key of a total."""
    answer = QUOTE.replace("GOODS", "51.90").replace("PAY", "60.40")

    assert "51.90" in recounted(["51.90", "60.40", "13.00", "14.40", "23.50"], [answer], [ORDER]).firm


@pytest.mark.parametrize(("total", "right"), [("430", True), ("525", False), ("215", False)])
def test_the_total_of_the_rows_that_its_label_names(total, right):
    """All rows together are not those that are heated."""
    answer = f"""| Greenhouse | m2 | Heated |
|---|---|---|
| North | 120 | yes |
| South | 95 | no |
| West | 310 | yes |
| Total (heated) | {total} | |"""

    assert (total in follow(total, answer, BEDS)) == right


@pytest.mark.parametrize(("wage", "right"), [("3,210.00", True), ("3,120.00", False), ("1,926.00", False)])
def test_hours_by_the_wage_of_the_row_that_is_named(wage, right):
    """The other worker's hours make another sum."""
    answer = f"| Worker | Pay |\n|---|---|\n| Odile Faber | {wage} |\n| Henk Maris | 1,674.00 |"

    assert (wage in follow(f"{wage} 1,674.00", answer, STAFF)) == right


@pytest.mark.parametrize(("paid", "right"), [("86.67", True), ("87.66", False), ("75.33", False)])
def test_a_rate_of_the_sources_is_a_factor(paid, right):
    """Overtime at 135 % of the wage, and not at the wage of somebody else."""
    answer = f'overtime = {{\n    "Faber": {paid},\n}}'
    rule = "Three hours of overtime were worked by Odile Faber."
    source = STAFF.replace("wage\n", "wage,extra_hours\n").replace("21.40", "21.40,3").replace("18.60", "18.60,0")

    assert (paid in follow(paid, answer, source, rule, "Overtime is paid at 135% of the wage.")) == right


@pytest.mark.parametrize(("due", "right"), [("10:05", True), ("12:05", False), ("11:05", False)])
def test_a_deadline_by_the_rule_of_its_class(due, right):
    """What a clause says of minor faults holds for no severe one."""
    rule = "A severe fault is looked at within one hour, a minor one within three hours."

    assert (due in follow(due, f"7711: 2025-06-02 {due}", TICKETS, rule)) == right


def test_the_clause_of_the_other_class_holds_for_its_row():
    """The minor fault has three hours."""
    rule = "A severe fault is looked at within one hour, a minor one within three hours."

    assert follow("13:40", "7712: 2025-06-02 13:40", TICKETS, rule) == {"13:40"}
    assert not follow("11:40", "7712: 2025-06-02 11:40", TICKETS, rule)


@pytest.mark.parametrize(("seconds", "right"), [("2100", True), ("720", False), ("3500", False)])
def test_a_limit_in_another_unit_is_that_of_its_section(seconds, right):
    """The limit of the build is not that of the scan."""
    answer = f"[scan]\nimage = alpine:3\nlimit_seconds = {seconds}"

    assert (seconds in follow(seconds, answer, JOBS)) == right


@pytest.mark.parametrize(("seconds", "right"), [("435", True), ("345", False), ("405", False)])
def test_the_time_of_all_tries(seconds, right):
    """Minutes and seconds of two lines of a log come together."""
    answer = f'{{"stages": [{{"stage": "scan", "tries": 2, "durationSec": {seconds}}}, {{"stage": "pack", "durationSec": 155}}]}}'

    assert (seconds in follow(f"{seconds} 155", answer, LOG)) == right


@pytest.mark.parametrize(("stamp", "right"), [("2025-06-02T06:05:00Z", True), ("2025-06-02T12:05:00Z", False)])
def test_a_local_time_as_utc(stamp, right):
    """Three hours ahead means three hours earlier."""
    answer = f'{{"no": 7711, "reportedUtc": "{stamp}"}}'
    clocks = "The shops' clocks were three hours ahead of UTC."

    assert (stamp in follow(stamp, answer, TICKETS, clocks)) == right


@pytest.mark.parametrize(("day", "right"), [("2025-07-16", True), ("2025-07-17", False), ("2025-07-02", False)])
def test_a_day_and_the_days_of_its_term(day, right):
    """To the day, also over the end of a month."""
    source = '{"bill": "R-5", "dated": "2 June 2025", "term_days": 44}'

    assert (day in follow(day, f'{{"bill": "R-5", "due": "{day}"}}', source)) == right


@pytest.mark.parametrize(("change", "right"), [("45.70", True), ("54.70", False)])
def test_the_difference_of_two_columns(change, right):
    """Of a row, and then of all rows."""
    answer = (
        f"| Branch | Change |\n|---|---|\n| Lund | +{change} |\n| Kalmar | +7.25 |\n\nAll in all 31.25 more was spent."
    )

    assert (change in follow(f"{change} 7.25 31.25", answer, BILL)) == right
    assert "31.25" in follow("31.25", answer, BILL)
    assert "37.25" not in follow("37.25", answer.replace("31.25", "37.25"), BILL)


@pytest.mark.parametrize(("retail", "net", "right"), [("454.30", "545.55", True), ("455.30", "545.55", False)])
def test_the_totals_of_groups_and_of_all(retail, net, right):
    """A wrong subtotal is noticed, whatever stands below it."""
    answer = f'{{"retail": {{"lund": 355.90, "visby": 98.40, "total": {retail}}}, "depot": {{"kalmar": 91.25, "total": 91.25}}, "netTotal": {net}}}'
    made = follow(f"{retail} {net}", answer, BILL)

    assert (retail in made) == right
    assert net in made


def test_what_the_named_row_states_is_not_made():
    """North has 120 m2: that 215 is what North and South have together makes it no area of North."""
    answer = "| Greenhouse | Area m2 |\n|---|---|\n| North | 215 |\n| West | 310 |"

    assert not follow("215", answer, BEDS)


def test_a_sentence_about_sentences_is_left_to_the_rules_of_prose():
    """Figures of one sentence make others by chance."""
    assert not follow("36", "Of these, 36 sing in the choir.", "The choir has 90 members, of whom 54 sing alto.")


def test_a_line_of_csv_that_was_read_as_one():
    """Its figures stand each for itself: each is stated or follows."""
    right = "part,pieces,price_each,sum\nhinge,4,3.25,13.00\nlatch,6,2.40,14.40"

    assert follow("4,3.25,13.00 6,2.40,14.40", right, ORDER) == {"4,3.25,13.00", "6,2.40,14.40"}
    assert follow("4,3.25,13.00 6,2.40,15.40", right.replace("14.40", "15.40"), ORDER) == {"4,3.25,13.00"}


@pytest.mark.parametrize(("heat", "right"), [("253.15", True), ("293.15", False)])
def test_degrees_in_kelvin(heat, right):
    """The sign of what is stated counts."""
    assert (heat in follow(heat, f"probe_temp: {heat} K\nprobe: B", "PROBE_TEMP_C = -20\nPROBE = 7")) == right


def test_a_long_table_takes_no_long_time():
    """Two hundred rows of products are recounted within seconds."""
    rows = [(f"part{n:03d}", n % 7 + 2, 1.25 + n * 0.35) for n in range(190)]
    source = "\n".join(["part,pieces,each", *(f"{name},{count},{each:.2f}" for name, count, each in rows)])
    lines = [f"| {name} | {count * round(each, 2):.2f} |" for name, count, each in rows]
    texts = " ".join(line.split("|")[2].strip() for line in lines)
    started = time.perf_counter()
    follow(texts, "\n".join(["| Part | Sum |", "|---|---|", *lines]), source)

    assert time.perf_counter() - started < 10
