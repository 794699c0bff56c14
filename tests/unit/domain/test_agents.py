"""The registry of agent types: what it reads, and how it refuses what it does not (SPEC-012 §7.1)."""

from __future__ import annotations

import pytest

from interlock.domain.agents import AgentType, as_fields, read_registry
from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.pods import account_digest
from tests.support.policy.agents import SPECIFICATION, digest, fields


def one(**changes):
    return {"agents": {"orchestrator": {**fields("k"), **changes}}}


@pytest.mark.req("AGT-1")
def test_the_registry_of_the_specification_is_read_whole():
    """Every field of SPEC-012 §7.1; the policy in its canonical text."""
    found = read_registry(SPECIFICATION)

    assert found.with_key(digest("crp_gw_prod_legal_1")) == AgentType(
        name="specialist_legal",
        keys=(digest("crp_gw_prod_legal_1"),),
        max_loop_depth=1,
        max_delegations=0,
        strategies=("push", "reflexive"),
        policy="halt-on HIGH; require-grounding 0.90; block-fabrication",
    )
    assert list(found.by_name) == ["orchestrator", "specialist_legal"]
    assert found.with_key(digest("another")) is None


@pytest.mark.req("AGT-1")
def test_what_is_left_out_is_left_to_the_deployment():
    """A number that is absent is no limit of zero, and no list of strategies is no empty list."""
    [agent] = read_registry(one()).by_name.values()

    assert (agent.max_loop_depth, agent.max_delegations, agent.strategies, agent.policy) == (None, None, (), "")


def test_an_agent_may_have_several_keys():
    """So that a key can be changed without a moment in which none is good."""
    keys = [f"sha256:{digest(name)}" for name in ("old", "new")]

    found = read_registry(one(api_key=keys))

    assert found.with_key(digest("old")) is found.with_key(digest("new")) is found.by_name["orchestrator"]


@pytest.mark.parametrize("agent", read_registry(SPECIFICATION).by_name.values(), ids=lambda agent: agent.name)
def test_what_is_written_is_read_back_the_same(agent):
    """The fields of an agent type and the type that they describe are one."""
    assert read_registry({"agents": {agent.name: as_fields(agent)}}).by_name == {agent.name: agent}


BAD = {
    "no mapping": (None, "the file"),
    "a list": ([1], "the file"),
    "unknown at the top": ({"agents": {}, "agent": {}}, "the file"),
    "no agents": ({}, "agents"),
    "agents is a list": ({"agents": []}, "agents"),
    "name": ({"agents": {"a b": fields("k")}}, "agents"),
    "name is a number": ({"agents": {7: fields("k")}}, "agents"),
    "name too long": ({"agents": {"a" * 65: fields("k")}}, "agents"),
    "agent is a text": ({"agents": {"orchestrator": "x"}}, "agents.orchestrator"),
    "unknown field": (one(max_loop_dept=3), "agents.orchestrator"),
    "no key": ({"agents": {"orchestrator": {}}}, "agents.orchestrator.api_key"),
    "key is none": (one(api_key=None), "agents.orchestrator.api_key"),
    "no keys": (one(api_key=[]), "agents.orchestrator.api_key"),
    "key twice": (one(api_key=[f"sha256:{digest('k')}"] * 2), "agents.orchestrator.api_key"),
    "key in capitals": (one(api_key="sha256:" + "A" * 64), "agents.orchestrator.api_key"),
    "key is short": (one(api_key="sha256:" + "a" * 63), "agents.orchestrator.api_key"),
    "key is a number": (one(api_key=5), "agents.orchestrator.api_key"),
    "depth is a text": (one(max_loop_depth="3"), "agents.orchestrator.max_loop_depth"),
    "depth is true": (one(max_loop_depth=True), "agents.orchestrator.max_loop_depth"),
    "depth is none": (one(max_loop_depth=None), "agents.orchestrator.max_loop_depth"),
    "depth is negative": (one(max_loop_depth=-1), "agents.orchestrator.max_loop_depth"),
    "depth is too deep": (one(max_loop_depth=101), "agents.orchestrator.max_loop_depth"),
    "depth is no whole number": (one(max_loop_depth=1.0), "agents.orchestrator.max_loop_depth"),
    "delegations": (one(max_delegations=float("inf")), "agents.orchestrator.max_delegations"),
    "strategies is a text": (one(allowed_strategies="push"), "agents.orchestrator.allowed_strategies"),
    "no strategy": (one(allowed_strategies=[]), "agents.orchestrator.allowed_strategies"),
    "unknown strategy": (one(allowed_strategies=["reflexiv"]), "agents.orchestrator.allowed_strategies"),
    "strategy twice": (one(allowed_strategies=["push", "push"]), "agents.orchestrator.allowed_strategies"),
    "strategy is a number": (one(allowed_strategies=[1]), "agents.orchestrator.allowed_strategies"),
    "policy is a list": (one(safety_policy=["halt-on HIGH"]), "agents.orchestrator.safety_policy"),
    "bad policy": (one(safety_policy="halt-on HIGHEST"), "agents.orchestrator.safety_policy"),
    "empty policy": (one(safety_policy=""), "agents.orchestrator.safety_policy"),
}


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize(("document", "place"), BAD.values(), ids=BAD)
def test_a_bad_registry_is_refused_by_its_place(document, place):
    """The place and what is expected there; a limit that was misspelt is not passed over."""
    with pytest.raises(Refused) as refused:
        read_registry(document)

    assert (refused.value.kind, refused.value.reason) == (Kind.INVALID, "AGENTS_INVALID")
    assert refused.value.metadata["place"] == place
    assert refused.value.message.startswith(f"{place}: expected ")


@pytest.mark.req("AGT-1")
def test_a_plain_key_is_refused_with_the_command_that_hashes_it():
    """And is not repeated: the message goes into logs."""
    with pytest.raises(Refused) as refused:
        read_registry(one(api_key="crp_gw_prod_orch_secret"))

    assert "interlock agents hash-key" in refused.value.metadata["hint"]
    assert "secret" not in f"{refused.value} {refused.value.metadata}"


@pytest.mark.req("AGT-1")
def test_a_misspelt_field_gets_the_nearest_name():
    """As everywhere in the language."""
    with pytest.raises(Refused, match="did you mean max_loop_depth"):
        read_registry(one(max_loop_dept=3))


@pytest.mark.req("AGT-1")
def test_two_agents_with_one_key_are_refused_naming_both():
    """Nobody could tell which of them is calling."""
    with pytest.raises(Refused) as refused:
        read_registry({"agents": {"a": fields("k"), "b": fields("k")}})

    assert refused.value.metadata["place"] == "agents.b.api_key"
    assert "a has the same one" in refused.value.message


def test_a_bad_policy_keeps_the_place_in_the_policy():
    """Position and the nearest name, as the policy's own reader tells them."""
    with pytest.raises(Refused) as refused:
        read_registry(one(safety_policy="warn-on HIGH; halt-on CRITCAL"))

    assert (refused.value.metadata["position"], refused.value.metadata["did_you_mean"]) == ("22", "CRITICAL")


@pytest.mark.req("KUB-3")
def test_a_service_account_is_as_good_as_a_key():
    """A type may have accounts, keys or both; it is found by either, and written again as it was read."""
    fields_ = {"service_accounts": ["agents/billing", "agents/audit"], "max_loop_depth": 2}
    registry = read_registry({"agents": {"billing": fields_}})
    found = registry.with_key(account_digest("agents/billing"))

    assert found is not None
    assert ("billing", ()) == (found.name, found.keys)
    assert {**fields_, "service_accounts": ["agents/audit", "agents/billing"]} == as_fields(found)
    assert registry.with_key(account_digest("agents/other")) is None


@pytest.mark.req("KUB-3")
@pytest.mark.parametrize("accounts", [[], "agents/billing", ["billing"], ["Agents/billing"], ["a/b", "a/b"], [1], None])
def test_accounts_that_are_none_are_refused(accounts):
    """A misspelt account would give its pods no type, and with it no limit."""
    with pytest.raises(Refused) as raised:
        read_registry({"agents": {"billing": {"service_accounts": accounts}}})
    assert "agents.billing.service_accounts" == raised.value.metadata["place"]


@pytest.mark.req("KUB-3")
def test_an_account_belongs_to_one_type():
    """Two types with one account would be a limit that depends on their order."""
    with pytest.raises(Refused, match="an account of its own"):
        read_registry({"agents": {name: {"service_accounts": ["a/b"]} for name in ("one", "two")}})
