"""What an answer makes because it was asked to is no fabrication; what it says wrongly of what was given is one (ATT-5, ATT-8)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.document import Fact
from interlock.dpe.grounding.given.basis import mode
from interlock.dpe.grounding.given.work import asks_for_work, is_program
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = pytest.mark.req("ATT-5", "ATT-8")

POLL = """import time

def poll(job, tries=3):
    for n in range(tries):
        if job.done():
            return job.result()
        time.sleep(0.2)
    raise TimeoutError("job not done")"""
PROGRAMS = {
    "python": POLL,
    "javascript": "const users = async () => {\n  const res = await fetch('/users');\n  return res.json();\n};",
    "java": "public class Cache {\n    private final Map<String, String> data = new HashMap<>();\n    return data.get(key);\n}",
    "sql": "SELECT name, total\nFROM orders\nWHERE total > 100\nORDER BY total DESC",
    "image": 'FROM python:3.9\nWORKDIR /app\nCOPY . .\nCMD ["python", "app.py"]',
    "shell": 'for f in *.log; do\n  gzip "$f"\ndone',
    "trace": 'Traceback (most recent call last):\n  File "main.py", line 8, in run\n    total = a / b\nZeroDivisionError: division by zero',
}
OTHERS = {
    "prose": "The tenant shall pay the rent of 900 euros on the first of each month.",
    "mail": "Dear Ms Reed,\n\nthe order 4411 was shipped on 3 May.\n\nBest,\nTom",
    "keys": "Date: 3 May\nPlace: Room 4\nHost: Dana Reed",
    "record": "order_id: 4411\nstatus: shipped\ncarrier: DHL\neta: 2026-05-03",
    "json": '[{"id": 1, "text": "Revenue rose by 4 %."}]',
    "csv": "name,price\nA,10\nB,20",
    "table": "| name | price |\n|---|---|\n| A | 10 |\n| B | 20 |",
    "log": "INFO 2026-05-01 12:00:01 started\nERROR 2026-05-01 12:00:05 disk full",
    "steps": "1. Open the lid.\n2. Add 2 litres of water.\n3. Close it; wait 10 minutes.",
}
ORDERS = (
    "Fix this code: it gives up too early.", "Why does it fail?", "Make it faster", "Can you add type hints?", "refactor",
    "Now use 10 tries", "How do I make this wait longer?", "Is there a bug in this?", "I like it. Please rename poll.",
)  # fmt: skip
QUESTIONS = (
    "Explain this code.", "What does this do?", "How many retries are there?", "Describe what the function returns.",
    "Summarise this script.", "What is the default of tries?", "",
)  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_is_known_by_its_lines(text):
    """In any of the languages that people paste, and the trace of one."""
    assert is_program(text)


@pytest.mark.parametrize("text", [*OTHERS.values(), "", "\n \n"], ids=[*OTHERS, "empty", "blank"])
def test_what_states_something_is_no_program(text):
    """Records, tables and mails are what an answer has to be faithful to, whatever is asked for."""
    assert not is_program(text)


@pytest.mark.parametrize(("query", "asked"), [*((one, True) for one in ORDERS), *((one, False) for one in QUESTIONS)])
def test_an_order_is_told_from_a_question(query, asked):
    """Who asks what a program says is to be told that."""
    assert asks_for_work(query, [Fact("f", POLL, 0.5)]) == asked


def _request(query: str, *sources: str, **given) -> Request:
    facts = tuple(Fact(f"f{number}", source, 0.5) for number, source in enumerate(sources, 1))
    return Request(outputs=(Output(0, "I raised tries to 10."),), facts=facts, query=query, **given)


def test_only_programs_are_worked_on_and_a_stricter_mode_stays():
    """Other sources keep what they are for, and who asks for grounding, or requires it, gets it."""
    order = ORDERS[0]

    assert mode(_request(order, POLL)) is GroundingMode.OPEN
    assert mode(_request(order, POLL, "Tests: 12 passed")) is GroundingMode.OPEN
    assert mode(_request(QUESTIONS[0], POLL)) is GroundingMode.PREFERRED
    assert mode(_request(order, OTHERS["record"])) is GroundingMode.PREFERRED
    assert mode(_request(order, POLL, 5 * OTHERS["prose"])) is GroundingMode.PREFERRED
    assert mode(_request(order, POLL, grounding_required=True)) is GroundingMode.PREFERRED
    assert mode(_request(order, POLL, grounding_mode=GroundingMode.STRICT)) is GroundingMode.STRICT


def test_settings_are_worked_on_where_the_order_says_so():
    """A record looks like a file of settings: an order about anything else leaves it a source."""
    settings = [Fact("f", "image: postgres:16\nreplicas: 3\nport: 5432\ntls: true", 0.5)]

    assert asks_for_work("Make this config more robust.", settings)
    assert asks_for_work(
        "How do I fix my nginx config?", [Fact("f", "server {\n  listen 8080;\n  root /var/www;\n}", 0.5)]
    )
    assert not asks_for_work("What does this config say?", settings)
    assert not asks_for_work("Update the customer on the settings.", settings)
    assert not asks_for_work("Write a reply about this order.", [Fact("f", OTHERS["record"], 0.5)])


WORKED = (
    "I changed the delay from 0.2 to 0.5 seconds and raised tries from 3 to 10.",
    (
        f"Here is a version that waits up to 5 seconds:\n\n```python\n{POLL.replace('0.2', '0.5').replace('=3', '=10')}\n```\n\n"
        "It now tries 10 times and sleeps 0.5 seconds between tries."
    ),
    "You could set tries to 10, or use a timeout of 30 seconds instead.",
    "I added exponential backoff, which starts at 100 ms and ends at 5 seconds.",
)


@pytest.mark.models
@pytest.mark.parametrize("text", WORKED)
async def test_what_the_answer_makes_is_no_fabrication(text):
    """A new value, a new limit or a new way is what was asked for."""
    assert is_clean(await _judged(ORDERS[0], text))


@pytest.mark.models
@pytest.mark.parametrize(
    ("query", "text", "sources"),
    [
        (QUESTIONS[0], "It tries 5 times and sleeps 0.2 seconds between tries.", ()),
        (ORDERS[0], "`poll` does not raise TimeoutError when the job is not done. I changed that.", ()),
        (ORDERS[0], "As Smith et al. (2019) show, 0.5 is best: https://arxiv.org/abs/1901.12345", ()),
        (ORDERS[0], "I raised tries to 10. All 14 tests pass.", ("Tests: 12 passed, 0 failed",)),
    ],
)
async def test_what_it_says_wrongly_is_found(query, text, sources):
    """Of the program that is asked about, of one that is worked on, of a paper, of a result beside it."""
    assert not is_clean(await _judged(query, text, *sources))


MEETING = "The meeting with Acme is on 3 May 2026 at 10:00 in Room 4. Dana Reed leads it."
MAIL = "Dear team, the release slipped by two weeks because of the failing tests. We now aim for 20 June. Best, Tom"
AGENDA, REPLY = "Draft an agenda for this meeting of 60 minutes.", "Reply to this mail and ask for a call next week."


@pytest.mark.models
@pytest.mark.parametrize(
    ("query", "text", "source"),
    [
        (
            AGENDA,
            "10:00 Welcome by Dana Reed\n10:10 Status of the project\n10:40 Open questions\n10:55 Next steps",
            MEETING,
        ),
        (REPLY, "Dear Tom,\n\nthank you for the news. Could we have a call on Tuesday at 14:00?\n\nBest regards", MAIL),
        (REPLY, "Hi Tom,\n\nthanks. Would Wednesday, 3 June, at 10:30 work for a call of 30 minutes?\n\nBest", MAIL),
    ],
)
async def test_times_that_are_planned_or_proposed_are_no_fabrication(query, text, source):
    """They are what was asked for, and state nothing."""
    assert is_clean(await _judged(query, text, source, program=False))


@pytest.mark.models
@pytest.mark.parametrize(
    ("query", "text", "source"),
    [
        (AGENDA, "10:00 Welcome by Tom Bell of Zenith", MEETING),
        (AGENDA, "The meeting is in Room 5.\n10:00 Welcome", MEETING),
        (REPLY, "Dear Tom,\n\nthank you for letting us know about the delay of six weeks.", MAIL),
        (REPLY, "Dear Tom,\n\nthank you. We will pay 400 euros on 3 July.", MAIL),
    ],
)
async def test_what_a_draft_states_has_to_hold(query, text, source):
    """Names, places and what is said of the source are no proposals."""
    assert not is_clean(await _judged(query, text, source, program=False))


async def _judged(query: str, text: str, *sources: str, program: bool = True):
    given = (POLL, *sources) if program else sources
    facts = tuple(Fact(f"f{number}", source, 0.5) for number, source in enumerate(given, 1))
    return await pipeline().analyse(Request(outputs=(Output(0, text),), facts=facts, query=query))
