"""How windows that run side by side tighten one policy: the session's is the join of what they settle under (POL-5, DAG-9)."""

from __future__ import annotations

from functools import lru_cache

from interlock.domain.policy.directives import NOTHING, Policy, canonical, policy_hash
from interlock.domain.policy.policy_order import merge, relaxations
from interlock.domain.policy.policy_text import parse
from interlock.domain.session.spending import UNLIMITED, SpendingLimits
from interlock.domain.session.state import PolicyText


def is_tighter(before: PolicyText, after: PolicyText) -> bool:
    """Tell whether *after* is at least as tight as *before* in everything."""
    return before.text == after.text or not relaxations(_parsed(before), _parsed(after))


def tightened(present: PolicyText, asked: PolicyText) -> PolicyText:
    """Return *asked* when it is as tight as *present* in everything, else the join of both."""
    if is_tighter(present, asked):
        return asked
    text = canonical(merge(_parsed(present), _parsed(asked)))
    return PolicyText(text, policy_hash(text))


@lru_cache(maxsize=256)
def limits_in(text: str) -> SpendingLimits:
    """Return the spending limits of a canonical policy, which a child may only lower (KRN-9)."""
    policy = parse(text) if text else NOTHING
    if policy.max_spend_tokens is None and policy.max_spend_usd is None:
        return UNLIMITED
    return SpendingLimits(policy.max_spend_tokens, policy.max_spend_usd)


def _parsed(policy: PolicyText) -> Policy:
    return parse(policy.text) if policy.text else NOTHING
