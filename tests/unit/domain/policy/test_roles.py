"""Roles of the console in the reviewers file: what each may do, and that what is not meant is refused (OBS-5)."""

from __future__ import annotations

import pytest

from interlock.domain import approval
from interlock.domain.errors import Refused
from interlock.domain.policy.roles import EVERYTHING, Role, Sight, require_admin, require_content
from interlock.policy.reviewers import UNNAMED, read_reviewers
from interlock.policy.wiring import open_service
from interlock.runtime.settings.loading import load
from tests.support.policy import agents

pytestmark = pytest.mark.req("OBS-5")


def registered(**fields):
    """Return the message of one person with these fields."""
    document = agents.reviewers()
    document["reviewers"][agents.REVIEWER] |= fields
    return read_reviewers(document).messages()[0]


def test_a_person_without_a_role_is_what_everyone_was_before():
    """A file from before roles keeps its meaning: reviewers who see everything, with the actions that they had."""
    one = registered()

    assert (one.role, sorted(one.actions), list(one.sees_keys), list(one.sees_agent_types)) == (
        "reviewer",
        sorted(UNNAMED),
        [],
        [],
    )


def test_a_viewer_has_no_action():
    """Whoever may not see an answer cannot approve it, here or anywhere else."""
    assert list(registered(role="viewer").actions) == []
    assert not read_reviewers(
        {"reviewers": {"v": {**agents.reviewers()["reviewers"][agents.REVIEWER], "role": "viewer"}}}
    ).may_any(approval.RELEASE)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"role": "root"}, "role"), ({"role": "Viewer"}, "role"), ({"role": None}, "role"), ({"role": ["admin"]}, "role"),
        ({"role": "viewer", "actions": ["release"]}, "actions"), ({"sees": {}}, "sees"), ({"sees": {"keys": []}}, "sees.keys"),
        ({"sees": {"keys": "a"}}, "sees.keys"), ({"sees": {"scopes": ["a"]}}, "sees"), ({"sees": {"agent_types": [""]}}, "sees.agent_types"),
        ({"sees": {"keys": ["a\u202e"]}}, "sees.keys"), ({"sees": None}, "sees"), ({"roles": "admin"}, ""),
    ],
)  # fmt: skip
def test_what_is_no_role_is_refused_with_its_place(fields, place):
    """Nothing falls back to a role that was not meant."""
    with pytest.raises(Refused, match="REVIEWERS_INVALID") as refused:
        registered(**fields)

    assert refused.value.metadata["place"] == f"reviewers.{agents.REVIEWER}{'.' if place else ''}{place}"


async def test_a_process_with_an_unknown_role_does_not_start(tmp_path):
    """The refusal names the file, the place and the roles that there are."""
    document = agents.reviewers()
    document["reviewers"][agents.REVIEWER]["role"] = "auditor"
    settings = load(
        flags={"reviewers_file": agents.write(tmp_path / "reviewers.yaml", document), "state_dir": tmp_path}
    )

    with pytest.raises(Refused, match=r"REVIEWERS_INVALID.*role.*viewer, reviewer, admin"):
        await open_service(settings)


def test_an_unknown_role_of_the_link_is_refused_by_name():
    """As every setting with a list of values."""
    with pytest.raises(Refused, match="console_link_role"):
        load(flags={"console_link_role": "owner"})


@pytest.mark.parametrize(
    ("scope", "agent_type", "covered"),
    [
        ("team-a", "", True),
        ("team-b", "support", True),
        ("team-b", "", False),
        ("", "", False),
        ("support", "team-a", False),
    ],
)
def test_a_sight_covers_named_keys_and_named_types(scope, agent_type, covered):
    """Either suffices; a session without a name is covered by no limited sight."""
    sight = Sight(frozenset({"team-a"}), frozenset({"support"}))

    assert sight.covers(scope, agent_type) is covered
    assert EVERYTHING.covers(scope, agent_type)


@pytest.mark.parametrize(("role", "content", "stops"), [("viewer", 0, 0), ("reviewer", 1, 0), ("admin", 1, 1)])
def test_each_role_may_what_the_one_before_it_may(role, content, stops):
    """Figures, then content, then stops."""
    assert [bool(content), bool(stops)] == [_passes(require_content, role), _passes(require_admin, role)]


def _passes(check, role: str) -> bool:
    try:
        check(Role(role))
    except Refused:
        return False
    return True
