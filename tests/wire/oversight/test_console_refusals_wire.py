"""What the console says when it cannot do what was asked: in words with a way back, or as JSON to a program (OBS-5)."""

from __future__ import annotations

import pytest
import pytest_asyncio

from interlock.domain.errors import unavailable
from tests.support.policy import agents
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.people import VIEWER, people, who
from tests.support.sidecar.sidecar import Hooked

pytestmark = [pytest.mark.req("OBS-5"), pytest.mark.asyncio(loop_scope="module")]

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PROGRAM = {"accept": "application/json"}
NOBODY = "crp_sess_" + "0" * 32


class Outage:
    """Whether the audit service's lists are down."""

    def __init__(self) -> None:
        self.is_on = False

    async def strike(self, _request) -> None:
        if self.is_on:
            raise unavailable("AUDIT_UNAVAILABLE", "the audit service does not answer", retry_after_ms=0)

    def wrap(self, services):
        """The services of a mesh, with the outage before the lists of the audit service."""
        lists = ("ListSessions", "ListKernels", "ListExperiments")
        return {**services, "audit": Hooked(services["audit"], **dict.fromkeys(lists, self.strike))}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A console with a person of each role, and nothing in it."""
    outage = Outage()
    async with reviewed_world(tmp_path_factory.mktemp("refusals"), people(), wrap=outage.wrap) as running:
        running.outage = outage
        yield running


async def asked(world, path: str, name: str = agents.REVIEWER, method: str = "GET", **headers: str):
    """Ask for a path as the person of that name."""
    await world.oversight.browse(**who(name))
    return await world.oversight.client.request(method, path, headers=headers)


@pytest.mark.parametrize(
    ("path", "status", "reason", "back"),
    [
        ("/nowhere", 404, "PATH_NOT_FOUND", "/sessions"), ("/kernels/nowhere", 404, "PATH_NOT_FOUND", "/kernels"),
        (f"/sessions/{NOBODY}", 404, "SESSION_NOT_FOUND", "/sessions"), ("/sessions/nonsense", 400, "INVALID_ID", "/sessions"),
        ("/windows/crp_win_" + "0" * 32, 404, "REPORT_NOT_FOUND", "/sessions"), ("/held/nonsense", 400, "INVALID_ID", "/"),
        ("/kernels?scope=nobody&kernel=none", 404, "KERNEL_NOT_FOUND", "/kernels"),
        (f"/decisions/{NOBODY}", 404, "DECISION_EXPERIMENT_NOT_FOUND", "/decisions"),
        ("/sessions?colour=red", 400, "UNKNOWN_PARAMETER", "/sessions"),
    ],
)  # fmt: skip
async def test_a_person_is_told_in_words_with_the_way_back(world, path, status, reason, back):
    """A page with a sentence, the reason, who is signed in, and a link to where one can go on; under the headers of every page."""
    page = await asked(world, path, **BROWSER)

    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert f"<strong>{reason}</strong>" in page.text
    assert "There is nothing here" in page.text or "is not one that this page understands" in page.text
    assert f'Back to <a href="{back}">' in page.text
    assert agents.REVIEWER in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("path", "method", "status", "reason"),
    [
        ("/nowhere", "GET", 404, "PATH_NOT_FOUND"), ("/sessions", "PUT", 405, "METHOD_NOT_ALLOWED"),
        (f"/sessions/{NOBODY}", "GET", 404, "SESSION_NOT_FOUND"), ("/api/held/nonsense", "GET", 400, "INVALID_ID"),
    ],
)  # fmt: skip
async def test_a_program_is_told_in_json(world, path, method, status, reason):
    """By what it accepts, at every path; signed out it is refused, and not sent to a page."""
    answer = await asked(world, path, method=method, **PROGRAM)
    world.oversight.client.cookies.clear()
    stranger = await world.oversight.client.get("/sessions", headers=PROGRAM)

    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert (stranger.status_code, stranger.json()["reason"]) == (401, "SIGN_IN_REQUIRED")


async def test_a_program_that_takes_anything_gets_json_of_what_is_nowhere(world):
    """As before: a page of a path that is none is for browsers alone, and no path of the API answers with one."""
    anything = await asked(world, "/nowhere", accept="*/*")
    api = await asked(world, "/api/nowhere", **BROWSER)

    assert [one.json()["reason"] for one in (anything, api)] == ["PATH_NOT_FOUND"] * 2


async def test_a_page_that_is_not_for_a_role_says_so(world):
    """A viewer is told that the page is not for that role, and whose it is."""
    page = await asked(world, "/stuck", VIEWER, **BROWSER)

    assert page.status_code == 403
    assert "This page is not for your role" in page.text
    assert "ROLE_SEES_NO_CONTENT" in page.text


async def test_a_stranger_and_another_host_learn_nothing(world):
    """A path that is none shows a stranger the way to sign in; under a foreign name nobody's name or token is shown."""
    csrf = await world.oversight.browse(**who(agents.REVIEWER))
    foreign = await world.oversight.client.get("/nowhere", headers={**BROWSER, "host": "evil.example"})
    world.oversight.client.cookies.clear()
    stranger = await world.oversight.client.get("/nowhere", headers=BROWSER)

    assert (foreign.status_code, stranger.status_code) == (404, 404)
    assert csrf not in foreign.text
    assert agents.REVIEWER not in foreign.text
    assert 'href="/sign-in"' in stranger.text


@pytest.mark.parametrize("path", ["/sessions", "/kernels", "/decisions"])
async def test_a_service_that_is_down_is_told_under_every_list(world, path):
    """The page says that a part does not answer and that nothing is lost, and is there again when the part is."""
    world.outage.is_on = True
    try:
        page = await asked(world, path, **BROWSER)
    finally:
        world.outage.is_on = False
    again = await asked(world, path, **BROWSER)

    assert page.status_code == 503
    assert "Nothing is lost: reload this page" in page.text
    assert again.status_code == 200
