"""Definitions, schemas and descriptors: what is wrong is refused when it is declared (SEED-5 §3, §5, §13)."""

from __future__ import annotations

import json

import pytest

from interlock.domain.decision.agents import described
from interlock.domain.decision.definition import defined
from interlock.domain.decision.schema import fits, schema_fault
from interlock.domain.errors import Refused
from tests.support.decisions import EVERYBODY, ML, PROTOCOL, RULES
from tests.support.paths import PACKAGE


@pytest.mark.req("DEC-1")
@pytest.mark.parametrize("name", ["ml", "oncall"])
def test_bundled_profiles_are_definitions(name):
    """Two fields, one engine."""
    rules = defined((PACKAGE / "decision" / "profiles" / f"{name}.json").read_text())

    assert rules.actions and rules.signals and rules.rules
    assert defined(rules.text) == rules


@pytest.mark.req("DEC-1")
@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"limits": {"min_confidence": 2}}, "limits.min_confidence"),
        ({"limits": {"max_cycles": 1.5}}, "limits.max_cycles"),
        ({"limits": {"speed": 1}}, "limits"),
        ({"actions": {}}, "actions"),
        ({"actions": {"A": {"risk": "SOME"}}}, "actions.A"),
        ({"actions": {"A": {"risk": "LOW", "guards": ["luck"]}}}, "actions.A"),
        ({"actions": {"A": {"risk": "LOW", "cost": {"per_unit": 1}}}}, "actions.A.cost"),
        ({"roles": {"X": 0}}, "roles.X"),
        ({"signals": {"s": {"type": "string"}}}, "signals.s"),
        ({"signals": {"s": {"type": "object", "pattern": "(a+)+"}}}, "signals.s"),
        ({"signals": {"CONTINUE": {"type": "object"}}}, "signals"),
        ({"rules": [{"role": "NOBODY"}]}, "rules"),
        ({"colour": 1}, "definition"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_part(change, part):
    """Nothing is opened on rules that cannot hold."""
    with pytest.raises(Refused) as refused:
        defined(json.dumps({**json.loads(ML), **change}))

    assert refused.value.reason == "DECISION_DEFINITION_INVALID"
    assert refused.value.metadata["part"] == part


@pytest.mark.req("DEC-1")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "a b"}, "name"),
        ({"role": "KING"}, "role"),
        ({"inputs": ["weather"]}, "inputs"),
        ({"outputs": ["DROP_TABLES"]}, "outputs"),
        ({"authority": "ALL"}, "authority"),
        ({"risk": ""}, "risk"),
        ({"version": ""}, "version"),
    ],
)
def test_a_wrong_descriptor_is_refused_with_its_field(change, field):
    """An agent declares what the experiment knows."""
    assert [described(one, RULES).told() for one in EVERYBODY] == list(EVERYBODY)
    with pytest.raises(Refused) as refused:
        described({**PROTOCOL, **change}, RULES)

    assert refused.value.metadata["field"] == field


@pytest.mark.req("DEC-2")
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4, 1.5, True, "1"]),
        ({"type": "number"}, [1, 1.5], ["1", None, False]),
        ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "ab"], ["", "abc", 1]),
        ({"type": "boolean"}, [True], [1, "true"]),
        ({"type": "string", "enum": ["a"]}, ["a"], ["b"]),
        ({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}}, [[1]], [[], [1, 2, 3], ["a"]]),
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}, [{"a": 1, "b": 2}], [{}, {"a": "x"}]),
    ],
)  # fmt: skip
def test_payloads_are_held_against_their_schema(schema, good, bad):
    """Types are exact: a truth value is no number."""
    assert not schema_fault(schema)
    assert all(fits(schema, one) for one in good)
    assert not any(fits(schema, one) for one in bad)
