"""The live console over its real listener: who may look, what is shown, what is on record, and that texts stay harmless (OBS-5, A-17)."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack

import httpx
import pytest
import pytest_asyncio

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Refused
from interlock.oversight import link
from interlock.oversight.link import ConsoleLink
from interlock.runtime.settings.model import Settings
from interlock.sidecar import requests
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.sidecar import a_report, token_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("OBS-5")]

SAID = "The deposit is <script>alert(1)</script> 2,400 EUR. It is \u202edenruter\u202c within 14 days."
WRONG = "It is \u202edenruter\u202c within 14 days."


def report() -> dpe_pb2.Report:
    start = SAID.index(WRONG)
    claims = [
        dpe_pb2.Claim(
            claim_id="c1", text=SAID[: start - 1], start=0, end=start - 1, fact_id="f1", entailment=0.97,
            attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED,
        ),
        dpe_pb2.Claim(
            claim_id="c2", text=WRONG, start=start, end=len(SAID), contradiction=0.96,
            attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED,
            distortions=[dpe_pb2.Distortion(type="numerical", source_value="90 days", claim_value="14 days")],
        ),
    ]  # fmt: skip
    return a_report("MEDIUM", claims=claims, claims_total=2, distortion_count=1, meaning="Something was found.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A sidecar that answered two calls of one session, and its console."""
    async with reviewed_world(tmp_path_factory.mktemp("console")) as running:
        running.provider.answers(SAID)
        running.sidecar.dpe.report = report()
        first = await running.sidecar.chat()
        assert first.status_code == 200, first.text
        second = await running.sidecar.chat(token=token_of(first))
        assert second.status_code == 200, second.text
        running.session_id = second.headers["crp-context-session-id"]
        running.window_id = second.headers["crp-provenance-report-uri"].rpartition("/")[2]
        await running.oversight.look()
        yield running


async def shown(world, path: str) -> str:
    page = await world.oversight.client.get(path)
    assert page.status_code == 200, page.text
    return page.text


@pytest.mark.parametrize(
    "path",
    [
        "/sessions",
        "/sessions/crp_sess_" + "0" * 32,
        "/windows/crp_win_" + "0" * 32,
        "/events",
        "/policy",
        "/figures",
        "/kernels",
        "/decisions",
        "/decisions/crp_sess_" + "0" * 32,
        "/decisions/crp_sess_" + "0" * 32 + "/1",
        "/settings",
    ],
)
async def test_nothing_is_shown_to_who_is_not_signed_in(world, path):
    """Every page sends a stranger to the sign-in."""
    client = world.oversight.client
    kept = dict(client.cookies)
    client.cookies.clear()
    try:
        page = await client.get(path)
    finally:
        client.cookies.update(kept)

    assert (page.status_code, page.headers["location"]) == (303, "/sign-in")


async def test_a_wrong_secret_opens_nothing(world):
    """The secret of another process, or none, is refused; the view that is open stays."""
    form = {"viewer": "eve", "secret": "another"}
    answer = await world.oversight.client.post("/sign-in", data=form, headers={"origin": world.oversight.http})

    assert answer.status_code == 401
    assert "SIGN_IN_INVALID" in answer.text
    assert "set-cookie" not in answer.headers


async def test_the_list_shows_budgets_and_breakers(world):
    """A session with what it has left, its breaker, its risk and its outcome; the link leads to it."""
    page = await shown(world, "/sessions")

    assert f'href="/sessions/{world.session_id}?root={world.session_id}"' in page
    row = page[page.index(world.session_id) :]
    assert re.search(r"<meter [^>]*value=\"\d+\"", row)
    assert "CLOSED" in row
    assert "MEDIUM" in row


@pytest.mark.parametrize(
    ("query", "listed"), [("risk=medium", True), ("risk=low", False), ("breaker=open", False), ("agent=nobody", False)]
)
async def test_the_list_is_narrowed(world, query, listed):
    """By risk, breaker, agent type, state and caller."""
    assert (world.session_id in await shown(world, f"/sessions?{query}")) is listed


async def test_a_session_shows_its_windows_and_verifies_its_chain(world):
    """Both windows with what they cost; the button checks the stored bytes now."""
    page = await shown(world, f"/sessions/{world.session_id}")
    verified = await shown(world, f"/sessions/{world.session_id}?verify=1")

    assert page.count('class="item"') == 2
    assert f'href="/windows/{world.window_id}"' in page
    assert re.search(r"VALID</span> \d+ events and 2 windows were checked", verified)


async def test_a_window_marks_its_claims_in_place_and_stays_harmless(world):
    """The answer with each claim in its colour; markup and hidden characters of the answer are text."""
    page = await shown(world, f"/windows/{world.window_id}")

    assert '<a class="claim" href="#c1"><mark class="grounded">The deposit is &lt;script&gt;' in page
    assert '<a class="claim" href="#c2"><mark class="wrong">' in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "90 days" in page
    assert "It cost 0.05" in page


@pytest.mark.parametrize(
    ("facts", "most", "is_kept"), [(["f1", "f2"], 99, True), (["f2"], 99, False), (["f1"], 9, False)]
)
async def test_the_evidence_of_a_claim_is_kept_with_what_the_window_said(world, monkeypatch, facts, most, is_kept):
    """A delivered answer has the text of the fact that its claim names; one that was not given, or is too long to keep, is told of in words."""
    monkeypatch.setattr(requests, "MOST_EVIDENCE_BYTES", most)
    texts = {"f1": "The deposit <b>is</b> 2,400 EUR.", "f2": "Nobody names this one."}
    world.sidecar.dpe.report = report()
    given = [{"id": name, "content": texts[name]} for name in facts]
    answer = await world.sidecar.chat(interlock={"facts": given})
    page = await shown(world, f"/windows/{answer.headers['crp-provenance-report-uri'].rpartition('/')[2]}")

    assert answer.status_code == 200
    assert ("The deposit &lt;b&gt;is&lt;/b&gt; 2,400 EUR." in page) == is_kept
    assert ("The text of its evidence was not kept" in page) != is_kept
    assert "Nobody names this one." not in page
    assert '<a href="#c1">evidence f1</a>' in page


async def test_a_policy_is_tried_on_a_page(world):
    """A sound one has sentences and risk levels; a trap and a mistake have a caret at their place; another is compared."""
    sound = await shown(world, "/policy?text=halt-on+CRITICAL%3B+warn-on+HIGH&other=halt-on+HIGH")
    trap = await shown(world, "/policy?text=halt-on+HIGH%3B+warn-on+CRITICAL")
    wrong = await shown(world, "/policy?text=halt-on+HIHG")

    assert "Halts an answer whose risk is CRITICAL." in sound
    assert "halted by halt-on (releasable)" in sound
    assert re.search(r'warn-on</th><td>HIGH</td><td>–</td><td class="looser">looser', sound)
    caret = '<strong class="caret" aria-label="here">^</strong>'
    assert caret in trap.replace("\n", "")
    assert "it changes nothing" in trap
    assert "did you mean <strong>" in wrong
    assert wrong.index(caret) < wrong.index("HIHG", wrong.index(caret))


async def test_figures_over_time_are_drawn_by_the_server(world):
    """The calls of this process by risk, with their times, as bars and in numbers; nothing but our own style colours them."""
    before = await shown(world, "/figures")
    await world.sidecar.chat()
    page = await shown(world, "/figures")
    day = await shown(world, "/figures?last=24h")

    def medium(text: str) -> int:
        return int(re.search(r"(\d+) MEDIUM", text)[1])

    assert medium(page) == medium(before) + 1
    assert medium(day) == medium(page)
    assert page.count('<svg class="chart"') == 4
    assert re.search(r'<rect class="bar-medium" x="[\d.]+" y="[\d.]+"', page)
    assert "half within" in page
    assert "data-live" in page
    assert " style=" not in page


async def test_a_span_that_is_none_is_refused(world):
    """By name, as every parameter."""
    answer = await world.oversight.client.get("/figures?last=forever")

    assert (answer.status_code, "INVALID_PARAMETER" in answer.text) == (400, True)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "halt-on \u202eHIGH", "x" * 1_990, '" onfocus="alert(1)', "{{ 7 * 7 }}"]
)
async def test_a_hostile_policy_is_shown_harmless(world, text):
    """It is a mistake like any other: told, and never markup, an attribute or a template."""
    page = await world.oversight.client.get("/policy", params={"text": text})

    assert page.status_code == 200
    assert "It is not a policy" in page.text
    assert "<script>alert" not in page.text
    assert ' onfocus="alert' not in page.text
    assert "{{ 7" in page.text or "49" not in page.text


async def test_a_look_at_a_text_is_on_record(world):
    """Who looked, in the session's own chain, which still verifies; a look that cannot be recorded shows nothing."""
    await shown(world, f"/windows/{world.window_id}")
    looked = [e for e in await world.sidecar.events(world.session_id) if e.event_type == "CONTENT_VIEWED"]

    assert {(e.window_id, json.loads(e.data_json)["viewer"]) for e in looked} == {(world.window_id, "operator")}
    assert "VALID</span>" in await shown(world, f"/sessions/{world.session_id}?verify=1")


async def test_a_viewer_decides_nothing(world):
    """A view by the link reads; a decision needs a reviewer's key."""
    page = await shown(world, "/")
    csrf = re.search(r'data-csrf="([^"]+)"', page)[1]
    answer = await world.oversight.post(
        f"/api/held/{world.window_id}/decision", {"token": "x", "reason": "ACCURATE"}, csrf
    )

    assert (answer.status_code, answer.json()["reason"]) == (403, "VIEW_READS_ONLY")


async def test_an_open_page_hears_of_a_call(world):
    """One event after a call, on the line that a page keeps open."""
    async with world.oversight.client.stream("GET", "/events") as line:
        lines = line.aiter_lines()

        async def event() -> str:
            async for one in lines:
                if one.startswith("data: "):
                    return one
            raise AssertionError("the line was closed")

        first = await asyncio.wait_for(event(), 30)
        await world.sidecar.chat()
        second = await asyncio.wait_for(event(), 30)

    assert int(second[6:]) > int(first[6:])


@pytest.mark.parametrize(
    "path", ["/sessions?nothing=1", "/sessions?before=yesterday", "/windows/nothing", "/sessions/nothing"]
)
async def test_bad_paths_and_queries_are_refused(world, path):
    """Each with its reason, none as a defect."""
    answer = await world.oversight.client.get(path)

    assert answer.status_code in {400, 404}
    assert "INTERNAL" not in answer.text


async def test_the_link_is_in_a_file_of_its_owner(tmp_path):
    """Readable by the owner alone, and removed by the process that wrote it."""
    made = ConsoleLink("http://127.0.0.1:7075", "secret")
    link.write(tmp_path, made)

    assert (tmp_path / link.FILE).stat().st_mode & 0o777 == 0o600
    assert link.read(Settings(state_dir=tmp_path)) == made
    assert made.url("a b").startswith("http://127.0.0.1:7075/sign-in#viewer=a+b&secret=")
    link.remove(tmp_path, ConsoleLink("http://127.0.0.1:7075", "another"))
    assert (tmp_path / link.FILE).exists()
    link.remove(tmp_path, made)
    assert not (tmp_path / link.FILE).exists()


async def test_where_the_link_is_no_way_in_there_is_none(tmp_path):
    """Nothing is written, nothing is promised, and who asks for it is told why."""
    settings = Settings(state_dir=tmp_path, sign_in_ways="key")
    async with AsyncExitStack() as ends:
        said = link.offered(settings, ConsoleLink("http://127.0.0.1:7075", "secret"), ends)
        assert not (tmp_path / link.FILE).exists()
    with pytest.raises(Refused, match="SIGN_IN_WAY_OFF"):
        link.read(settings)

    assert said.startswith("http://127.0.0.1:7075,")
    assert "secret" not in said


async def test_an_open_page_reads_the_part_that_changes(world):
    """Without the frame around it and the form in it; a look is refused to nobody less than for the whole page."""
    part = await world.oversight.client.get("/sessions", headers={"x-interlock-part": "fresh"})
    whole = await world.oversight.client.get("/sessions")
    async with httpx.AsyncClient(base_url=world.oversight.http, trust_env=False) as stranger:
        nobody = await stranger.get("/sessions", headers={"x-interlock-part": "fresh"})

    assert part.text.startswith('<div id="fresh" data-live>')
    assert part.text in whole.text
    assert "csrf" not in part.text
    assert nobody.status_code in {302, 303, 401}
