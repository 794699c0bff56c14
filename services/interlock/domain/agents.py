"""Registered agent types: the name of each, its API keys or service accounts, and what it may do (SPEC-012 §7.1).

The registry is read from plain values, as a YAML or JSON reader returns them. Reading is strict: an unknown field is
refused by name, because a misspelt limit would not hold.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.dag.dag import STRATEGIES
from interlock.domain.errors import Refused, invalid
from interlock.domain.policy.directives import canonical
from interlock.domain.policy.pods import ACCOUNT, account_digest
from interlock.domain.policy.policy_text import parse

MOST_AGENTS = 10_000
MOST_KEYS = 16
DEEPEST = 100
MOST_DELEGATIONS = 1_000_000
KEY_PREFIX = "sha256:"
HASH_COMMAND = "interlock agents hash-key"

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NAME_RULE = "1 to 64 letters, digits, dots, hyphens or underscores"
_FIELDS = (
    "api_key",
    "service_accounts",
    "max_loop_depth",
    "max_delegations",
    "allowed_strategies",
    "safety_policy",
    "roots",
)
ROOTS = ("allowed", "forbidden")
"""Whether an agent type begins sessions of its own, or is only ever a sub-agent (ATT-2)."""


@dataclass(frozen=True)
class AgentType:
    """One agent type. Where a number is ``None``, the deployment's limit applies. No strategies means all strategies.

    ``keys`` are the SHA-256 digests of its API keys: lower-case hex, sorted. ``policy`` is canonical, and empty without one.
    """

    name: str
    keys: tuple[str, ...]
    max_loop_depth: int | None
    max_delegations: int | None
    strategies: tuple[str, ...]
    policy: str
    roots_forbidden: bool = False
    accounts: tuple[str, ...] = ()
    """Service accounts of Kubernetes whose pods are of this type, NAMESPACE/NAME, sorted."""

    @property
    def digests(self) -> tuple[str, ...]:
        """What callers of this type are known by."""
        return (*self.keys, *map(account_digest, self.accounts))


class Registry:
    """Agent types by name and by key."""

    def __init__(self, agents: Iterable[AgentType]) -> None:
        self.by_name: Mapping[str, AgentType] = {agent.name: agent for agent in sorted(agents, key=lambda a: a.name)}
        self._by_key: dict[str, AgentType] = {}
        for agent in self.by_name.values():
            for key in agent.digests:
                other = self._by_key.setdefault(key, agent)
                if other is not agent:
                    field, what = ("api_key", "a key") if key in agent.keys else ("service_accounts", "an account")
                    raise _bad(f"agents.{agent.name}.{field}", f"{what} of its own; {other.name} has the same one")

    def with_key(self, digest: str) -> AgentType | None:
        """Return the agent type whose API key or service account has this digest; ``None`` when no type has it."""
        return self._by_key.get(digest)


def read_registry(document: object) -> Registry:
    """Return the registry that *document* describes: a mapping with ``agents``, name → fields.

    Refused with AGENTS_INVALID; the metadata name the place, such as agents.orchestrator.max_loop_depth, and what is expected there.
    """
    top = _mapping("the file", document, ("agents",))
    if "agents" not in top:
        raise _bad("agents", "a mapping of agent types")
    listed = top["agents"]
    if not isinstance(listed, Mapping):
        raise _bad("agents", "a mapping of name to the fields of an agent type")
    if len(listed) > MOST_AGENTS:
        raise _bad("agents", f"at most {MOST_AGENTS} agent types")
    return Registry([_agent(name, fields) for name, fields in listed.items()])


def _agent(name: object, fields: object) -> AgentType:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise _bad("agents", f"names of {_NAME_RULE}; one of them is not")
    place = f"agents.{name}"
    given = _mapping(place, fields, _FIELDS)
    return AgentType(
        name=name,
        keys=_keys(f"{place}.api_key", given.get("api_key"), optional="service_accounts" in given),
        max_loop_depth=_number(f"{place}.max_loop_depth", given, DEEPEST),
        max_delegations=_number(f"{place}.max_delegations", given, MOST_DELEGATIONS),
        strategies=_strategies(f"{place}.allowed_strategies", given),
        policy=_policy(f"{place}.safety_policy", given),
        roots_forbidden=_roots(f"{place}.roots", given),
        accounts=_accounts(f"{place}.service_accounts", given),
    )


def _mapping(place: str, value: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _bad(place, f"a mapping with {', '.join(known)}")
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            told = f"; did you mean {near[0]}?" if near else ""
            name = key if isinstance(key, str) and NAME.fullmatch(key) else "a key"
            raise _bad(place, f"only {', '.join(known)}; {name} is none of them{told}")
    return value


def _keys(place: str, value: object, *, optional: bool) -> tuple[str, ...]:
    if value is None and optional:
        return ()
    listed = value if isinstance(value, list) else [value]
    if value is None or not 1 <= len(listed) <= MOST_KEYS:
        raise _bad(place, f"{KEY_PREFIX}<64 hex digits>, or a list of 1 to {MOST_KEYS} of them")
    found = tuple(sorted(_key(place, one) for one in listed))
    if len(set(found)) != len(found):
        raise _bad(place, "each key once")
    return found


def _accounts(place: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    if "service_accounts" not in given:
        return ()
    value = given["service_accounts"]
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_KEYS:
        raise _bad(place, f"a list of 1 to {MOST_KEYS} service accounts, NAMESPACE/NAME")
    if not all(isinstance(one, str) and ACCOUNT.fullmatch(one) for one in value):
        raise _bad(place, "service accounts as NAMESPACE/NAME, such as agents/billing")
    if len(set(value)) != len(value):
        raise _bad(place, "each service account once")
    return tuple(sorted(value))


def _key(place: str, value: object) -> str:
    text = value if isinstance(value, str) else ""
    digest = text.removeprefix(KEY_PREFIX)
    if not text.startswith(KEY_PREFIX) or not DIGEST.fullmatch(digest):
        expected = f"{KEY_PREFIX}<64 lower-case hex digits>, never the key itself"
        raise _bad(place, expected, hint=f"hash it with `{HASH_COMMAND}`")
    return digest


def _number(place: str, given: Mapping[str, Any], most: int) -> int | None:
    name = place.rpartition(".")[2]
    if name not in given:
        return None
    value = given[name]
    if type(value) is not int or not 0 <= value <= most:
        raise _bad(place, f"a whole number from 0 to {most}")
    return value


def _strategies(place: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    if "allowed_strategies" not in given:
        return ()
    value = given["allowed_strategies"]
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise _bad(place, "a list of at least one dispatch strategy; leave it out to allow all")
    for one in value:
        if one not in STRATEGIES:
            near = difflib.get_close_matches(one, STRATEGIES, n=1)
            raise _bad(
                place, f"strategies out of {', '.join(STRATEGIES)}" + (f"; did you mean {near[0]}?" if near else "")
            )
    if len(set(value)) != len(value):
        raise _bad(place, "each strategy once")
    return tuple(value)


def _policy(place: str, given: Mapping[str, Any]) -> str:
    if "safety_policy" not in given:
        return ""
    value = given["safety_policy"]
    if not isinstance(value, str):
        raise _bad(place, "a policy as in CRP-Safety-Policy, in quotes")
    try:
        return canonical(parse(value))
    except Refused as refused:
        bad = _bad(place, f"a policy: {refused.message}")
        bad.metadata = {**refused.metadata, **bad.metadata}
        raise bad from None


def _roots(place: str, given: Mapping[str, Any]) -> bool:
    if given.get("roots", "allowed") not in ROOTS:
        raise _bad(place, " or ".join(ROOTS))
    return given.get("roots") == "forbidden"


def _bad(place: str, expected: str, **metadata: str) -> Refused:
    return invalid(
        "AGENTS_INVALID", f"{place}: expected {expected}", **{**metadata, "place": place, "expected": expected}
    )


def as_fields(agent: AgentType) -> dict[str, Any]:
    """Return an agent type's fields in the form that ``read_registry`` takes. Absent fields are left out."""
    keys = [KEY_PREFIX + key for key in agent.keys]
    fields: dict[str, Any] = {"api_key": keys[0] if len(keys) == 1 else keys} if keys else {}
    if agent.accounts:
        fields["service_accounts"] = list(agent.accounts)
    if agent.max_loop_depth is not None:
        fields["max_loop_depth"] = agent.max_loop_depth
    if agent.max_delegations is not None:
        fields["max_delegations"] = agent.max_delegations
    if agent.strategies:
        fields["allowed_strategies"] = list(agent.strategies)
    if agent.policy:
        fields["safety_policy"] = agent.policy
    if agent.roots_forbidden:
        fields["roots"] = "forbidden"
    return fields
