"""The search of sessions, over the real listener and a real log: by outcome, time, risk, caller, and bad input (OBS-5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from interlock.audit.tree import searches
from tests.support.sidecar.oversight import HOLDS, decided, retried, reviewed_world
from tests.support.sidecar.sidecar import a_report

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("OBS-5")]

SESSION = "crp-context-session-id"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A session of each kind: one delivered, one halted, one whose answer is held, one whose answer a reviewer released."""
    began = datetime.now(UTC)
    async with reviewed_world(tmp_path_factory.mktemp("search")) as running:
        chat = running.sidecar.chat
        running.of = {"delivered": (await chat(headers={"authorization": "Bearer sk-another"})).headers[SESSION]}
        running.sidecar.dpe.report = a_report("CRITICAL")
        running.of["halted"] = (await chat(headers={"crp-safety-policy": "halt-on CRITICAL"})).headers[SESSION]
        running.sidecar.dpe.report = a_report("HIGH")
        running.of["held"] = (await chat(headers=HOLDS)).headers[SESSION]
        last = await chat(headers=HOLDS)
        token = await decided(running.sidecar, last)
        assert (await retried(running.sidecar, last, token)).status_code == 200
        running.of["released"] = last.headers[SESSION]
        await running.oversight.look()
        running.times = searched_times(began, datetime.now(UTC))
        yield running


def searched_times(began: datetime, ended: datetime) -> dict[str, str]:
    """Return the times that a query may name: of the sessions themselves, so that midnight between two of them changes nothing."""
    hour = timedelta(hours=1)
    return {
        "first_day": f"{began:%Y-%m-%d}",
        "last_day": f"{ended:%Y-%m-%d}",
        "day_after": f"{ended + timedelta(days=1):%Y-%m-%d}",
        "hour_before": f"{began - hour:%Y-%m-%dT%H:%M}",
    }


async def listed(world, query: str) -> set[str]:
    """Return which of the sessions a search shows."""
    page = await world.oversight.client.get(f"/sessions?{query}")
    assert page.status_code == 200, page.text
    return {name for name, session_id in world.of.items() if f'href="/sessions/{session_id}' in page.text}


ALL = {"delivered", "halted", "held", "released"}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", ALL),
        ("outcome=halted", {"halted"}),
        ("outcome=held", {"held", "halted"}),  # a reviewer may release what was halted: it is kept, too
        ("outcome=released", {"released"}),
        ("outcome=running", ALL),
        ("outcome=ended", set()),
        ("risk=critical", {"halted"}),
        ("risk=high&outcome=running", {"held", "released"}),
        ("agent=nobody", set()),
        ("since={first_day}", ALL),
        ("until={last_day}", ALL),
        ("since={hour_before}", ALL),
        ("until={hour_before}", set()),
        ("since={day_after}", set()),
        ("scope=&agent=&since=&until=&outcome=&risk=&breaker=", ALL),
    ],
    # Without the sets: their order differs from process to process.
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_sessions_are_found(world, query, wanted):
    """By what became of them, by risk, by time; empty fields narrow nothing."""
    assert await listed(world, query.format(**world.times)) == wanted


async def test_the_filters_of_a_search_stay_on_its_form(world):
    """What was searched for is in the form, and each session says what became of it."""
    page = (await world.oversight.client.get("/sessions?outcome=halted&since=2026-01-02")).text

    assert "<option selected>halted</option>" in page
    assert 'name="since" value="2026-01-02T00:00:00"' in page
    assert '<span class="word halted">HALTED</span>' in page


async def test_a_search_that_looked_at_enough_says_so_and_goes_on(world, monkeypatch):
    """One answer looks at a bounded number; the page names how far it came, and its link finds the rest."""
    monkeypatch.setattr(searches, "LOOKED", 2)
    page = (await world.oversight.client.get("/sessions?outcome=halted")).text
    further = page.split('<a href="/sessions')[-1].split('"')[0].replace("&amp;", "&")

    assert "of those that were looked at, back to" in page
    assert further.startswith("?outcome=halted&before=")
    assert await listed(world, further[1:]) == {"halted"}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("outcome=lost", "outcome is one of running, ended, halted, held, released"),
        ("risk=9", "risk is one of low, medium, high, critical"),
        ("breaker=ajar", "breaker is one of closed, half open, open"),
        ("since=yesterday", "since is a time in UTC such as 2026-05-25T10:00"),
        ("until=2026-02-30", "until is a time in UTC"),
        ("since=2026-05-25T25:00", "since is a time in UTC"),
        ("until=9999-12-31", "until is a time in UTC"),
        ("since=2026-05-26&until=2026-05-25T00:00", "since lies before until"),
        ("since=<script>", "since is a time in UTC"),
        ("nothing=1", "the query holds scope, agent, since, until, outcome, risk, breaker, before"),
    ],
)
async def test_bad_input_is_told_in_words(world, query, words):
    """Each parameter by its name and with what it may be; as JSON for a program."""
    page = await world.oversight.client.get(f"/sessions?{query}")
    told = await world.oversight.client.get(f"/sessions?{query}", headers={"accept": "application/json"})

    assert page.status_code == 400
    assert words in page.text
    assert told.json()["reason"] in {"INVALID_PARAMETER", "UNKNOWN_PARAMETER"}
