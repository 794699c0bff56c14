"""What groups give, by the file that lists them: closed, and never more than one group gives by itself (OBS-5)."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.domain.policy.group_roles import GroupGrant, granted, read_group_roles
from interlock.domain.policy.roles import EVERYTHING, ROLES, Role, Sight
from tests.support.paths import ROOT

pytestmark = pytest.mark.req("OBS-5")

A, B = Sight(keys=frozenset({"a"})), Sight(agent_types=frozenset({"b"}))
LISTED = {
    "viewers": GroupGrant(Role.VIEWER), "a": GroupGrant(Role.REVIEWER, A), "b": GroupGrant(Role.REVIEWER, B),
    "all": GroupGrant(Role.REVIEWER), "admins-of-a": GroupGrant(Role.ADMIN, A),
}  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "grant"),
    [
        ((), None),
        (("A", "all "), None),
        (("viewers", "unlisted"), GroupGrant(Role.VIEWER)),
        (("viewers", "a"), GroupGrant(Role.REVIEWER, A)),
        (("a", "b"), GroupGrant(Role.REVIEWER, Sight(A.keys, B.agent_types))),
        (("a", "all"), GroupGrant(Role.REVIEWER)),
        (("admins-of-a", "all"), GroupGrant(Role.ADMIN, A)),
    ],
)
def test_groups_give_the_highest_role_with_its_own_sessions(groups, grant):
    """No listed group, no role; a role's sessions are those of the groups that give it."""
    assert granted(groups, LISTED) == grant


SIGHTS = st.builds(Sight, st.frozensets(st.sampled_from("abc")), st.frozensets(st.sampled_from("xyz")))
GRANTS = st.dictionaries(st.sampled_from("ABCDE"), st.builds(GroupGrant, st.sampled_from(Role), SIGHTS))


@given(st.frozensets(st.sampled_from("ABCDEF")), GRANTS, st.sampled_from("abc"), st.sampled_from("xyz"))
def test_several_groups_give_nothing_that_none_of_them_gives(groups, listed, key, agent_type):
    """Whatever session a person sees with a role, one of the groups gives that role for it by itself."""
    grant = granted(groups, listed)
    single = [listed[group] for group in groups if group in listed]

    assert (grant is None) == (not single)
    if grant is not None and grant.sight.covers(key, agent_type):
        assert any(one.role is grant.role and one.sight.covers(key, agent_type) for one in single)
        assert all(ROLES.index(one.role) <= ROLES.index(grant.role) for one in single)


def test_the_file_gives_role_and_sessions():
    """A group has a role, and may be limited to keys and agent types."""
    document = {"groups": {"ops": {"role": "admin"}, "desk": {"role": "reviewer", "sees": {"keys": ["a"]}}}}

    assert read_group_roles(document) == {
        "ops": GroupGrant(Role.ADMIN, EVERYTHING),
        "desk": GroupGrant(Role.REVIEWER, A),
    }


def test_the_file_of_the_page_is_one():
    """What docs/console.md shows can be read as it stands there."""
    page = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    block = page.partition("# roles.yaml\n")[2].partition("```")[0]

    assert {grant.role for grant in read_group_roles(yaml.safe_load(block)).values()} == set(Role)


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"groups": {}},
        {"groups": []},
        {"groups": {"a": {"role": "viewer"}}, "default": {"role": "admin"}},
        {"groups": {"a": {"role": "owner"}}},
        {"groups": {"a": {"role": ["admin"]}}},
        {"groups": {"a": {}}},
        {"groups": {"a": "admin"}},
        {"groups": {"a": {"role": "viewer", "actions": []}}},
        {"groups": {"a": {"role": "reviewer", "sees": {}}}},
        {"groups": {"a": {"role": "reviewer", "sees": {"keys": []}}}},
        {"groups": {"a": {"role": "reviewer", "sees": {"scopes": ["x"]}}}},
        {"groups": {"": {"role": "viewer"}}},
        {"groups": {7: {"role": "viewer"}}},
        {"groups": {"a" * 257: {"role": "viewer"}}},
    ],
    ids=str,
)
def test_a_file_that_could_be_meant_otherwise_is_refused(document):
    """An unknown role, an empty list, a field too many: none counts as less, and none as more."""
    with pytest.raises(Refused, match="OIDC_ROLES_INVALID"):
        read_group_roles(document)
