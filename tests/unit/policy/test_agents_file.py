"""Writing the registry's file: one change at a time, all or nothing, and never over somebody's work."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock.domain.agents import AgentType, read_registry
from interlock.domain.errors import Kind, Refused
from interlock.policy import agents_file
from tests.support.policy.agents import SPECIFICATION, digest, write

TAX = AgentType("specialist_tax", (digest("tax"),), 1, 0, ("push",), "halt-on HIGH")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = write(tmp_path / "agents.yaml", SPECIFICATION)
    found.chmod(0o640)
    return found


@pytest.mark.req("AGT-1")
def test_an_agent_is_added_and_the_rest_is_kept(path):
    """The file says all of it afterwards, with the rights that it had, and nothing is left beside it but the lock."""
    before = agents_file.load(path).by_name

    assert agents_file.register(path, TAX) is False
    assert agents_file.load(path).by_name == {**before, "specialist_tax": TAX}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(file.name for file in path.parent.iterdir()) == ["agents.yaml", "agents.yaml.lock"]


@pytest.mark.req("AGT-1")
def test_an_agent_of_the_same_name_is_replaced(path):
    """The old one's key is good no longer."""
    agents_file.register(path, TAX)

    assert agents_file.register(path, AgentType("specialist_tax", (digest("new"),), None, None, (), "")) is True
    found = agents_file.load(path)
    assert found.with_key(digest("tax")) is None
    assert found.with_key(digest("new")) is not None


@pytest.mark.req("AGT-1")
def test_a_key_of_another_agent_is_refused(path):
    """Nothing is written then."""
    before = path.read_bytes()

    with pytest.raises(Refused) as refused:
        agents_file.register(path, AgentType("x", (digest("crp_gw_prod_orch_1"),), None, None, (), ""))

    assert (refused.value.kind, refused.value.reason) == (Kind.CONFLICT, "AGENT_KEY_TAKEN")
    assert refused.value.metadata["agent_type"] == "orchestrator"
    assert path.read_bytes() == before


@pytest.mark.req("AGT-1")
def test_removing_twice_changes_nothing_more(path):
    """The second time there is none, and the file is not written again."""
    assert agents_file.remove(path, "orchestrator") is True
    written = path.stat().st_mtime_ns

    assert agents_file.remove(path, "orchestrator") is False
    assert path.stat().st_mtime_ns == written
    assert list(agents_file.load(path).by_name) == ["specialist_legal"]


@pytest.mark.req("AGT-1")
def test_a_file_that_is_bad_now_is_left_alone(path):
    """Someone is at work on it; what they wrote is not lost to a rewrite."""
    path.write_text("agents: [")

    with pytest.raises(Refused) as refused:
        agents_file.register(path, TAX)

    assert (refused.value.reason, refused.value.metadata["cause"]) == ("AGENTS_FILE_FAULTY", "FILE_MALFORMED")
    assert path.read_text() == "agents: ["


@pytest.mark.req("AGT-1")
def test_changes_at_the_same_time_are_all_kept(path):
    """Eight writers at once: the lock gives each the file that the one before left."""
    agents = [AgentType(f"a{n}", (digest(f"a{n}"),), None, None, (), "") for n in range(24)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda agent: agents_file.register(path, agent), agents))

    assert {agent.name for agent in agents} < set(agents_file.load(path).by_name)


def test_a_link_stays_a_link(path, tmp_path):
    """What it points to is what is written."""
    link = tmp_path / "link.yaml"
    link.symlink_to(path)

    agents_file.register(link, TAX)

    assert link.is_symlink()
    assert "specialist_tax" in agents_file.load(path).by_name


def test_a_file_that_cannot_be_locked_is_told(tmp_path):
    """With a constant reason, and the file as it was."""
    path = write(tmp_path / "agents.yaml", SPECIFICATION)
    (tmp_path / "agents.yaml.lock").mkdir()

    with pytest.raises(Refused) as refused:
        agents_file.register(path, TAX)

    assert refused.value.reason == "AGENTS_FILE_NOT_WRITTEN"
    assert read_registry(SPECIFICATION).by_name == agents_file.load(path).by_name


WRITTEN = f"""\
# Who may do what. Ask the platform team before you change it.
agents:
    orchestrator:   # plans
        api_key: sha256:{digest("orch")}
        max_delegations: 5

    # The legal desk's.
    specialist_legal:
        api_key:
            - sha256:{digest("legal")}   # until June
            - sha256:{digest("legal-2")}
        safety_policy: "halt-on HIGH"
# end of file
"""


@pytest.mark.req("AGT-1")
def test_what_others_wrote_is_kept_with_its_comments(path):
    """An agent is added behind the others, in their indentation."""
    path.write_text(WRITTEN)
    agents_file.register(path, TAX)

    text = path.read_text()
    assert text.startswith(WRITTEN.removesuffix("# end of file\n"))
    assert text.endswith("# end of file\n")
    assert "\n    specialist_tax:\n" in text
    assert agents_file.load(path).by_name["specialist_tax"] == TAX


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize(("name", "kept"), [("orchestrator", "# The legal desk's."), ("specialist_legal", "# plans")])
def test_only_the_lines_of_one_agent_are_replaced_or_removed(path, name, kept):
    """The comment above the next one is the next one's."""
    path.write_text(WRITTEN)
    agents_file.register(path, AgentType(name, (digest("new"),), 1, None, (), ""))
    replaced = path.read_text()
    agents_file.remove(path, name)
    removed = path.read_text()

    for text in (replaced, removed):
        assert kept in text
        assert "# Who may do what." in text
        assert "# end of file" in text
    assert digest("new") in replaced
    assert f"{name}:" not in removed
    assert len(agents_file.load(path).by_name) == 1


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize(
    "text",
    [
        "agents: {}\n",
        f"agents: {{orchestrator: {{api_key: 'sha256:{digest('orch')}'}}}}\n",
        f"agents:\n  orchestrator: {{api_key: 'sha256:{digest('orch')}'}}",
        f"agents:\n  'orchestrator':\n    api_key: >-\n      sha256:{digest('orch')}\n\n\n",
        f"---\nagents:\n  orchestrator:\n    api_key: sha256:{digest('orch')}\n...\n",
    ],
)
def test_any_way_of_writing_it_ends_in_what_was_asked_for(path, text):
    """Where lines cannot be edited the whole file is written anew; added, replaced and removed come out right."""
    path.write_text(text)
    before = agents_file.load(path).by_name

    agents_file.register(path, TAX)
    assert agents_file.load(path).by_name == {**before, "specialist_tax": TAX}
    for name in [*before, "specialist_tax"]:
        agents_file.remove(path, name)

    assert agents_file.load(path).by_name == {}
