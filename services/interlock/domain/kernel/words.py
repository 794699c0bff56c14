"""A verdict in words: for a person, check by check, and for the model whose action was rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.domain.kernel.values import MICRO

_WORDS: Mapping[str, str] = {
    "KERNEL_STOPPED": "the kernel was stopped; nothing more is permitted",
    "COST_BELOW_MINIMUM": "it costs {have} {subject}, less than the {need} that every action costs at least",
    "BUDGET_EXCEEDED": "it costs {have} {subject}, and {need} is left",
    "STEPS_EXHAUSTED": "it would be step {count} of at most {most}",
    "PRECONDITION_BROKEN": "precondition {subject} does not hold",
    "INVARIANT_BROKEN": "{subject} would not hold afterwards",
    "INVARIANT_FAILED": "{subject} could not be evaluated on what would be afterwards",
    "INVARIANT_TOO_COSTLY": "{subject} takes too many steps to evaluate on what would be afterwards",
    "PREDICATE_BROKEN": "{subject} would not hold afterwards",
    "PREDICATE_MISSING": "the caller did not evaluate {subject}, or evaluated other code",
    "NUMBER_TOO_LARGE": "{subject} would become too large",
    "VALUE_TOO_LARGE": "{subject} would become too large",
    "WINDOW_FULL": "too many actions within the window of {subject}",
    "ACTION_IRREVERSIBLE": "{subject} cannot be undone",
    "ACTION_NEEDS_SAGA": "{subject} is compensated, not undone: roll its saga back",
    "CHILDREN_TOO_MANY": "it would be child {count} of at most {most}",
    "CHILDREN_TOO_DEEP": "it would be {count} deep, of at most {most}",
    "SAGAS_TOO_MANY": "too many sagas are open",
    "SAGA_TOO_LONG": "it would be step {count} of at most {most} of its saga",
    "COMPENSATION_STUCK": "what {subject} did needs a person: settle it as done, or as one to try again",
    "STATE_MOVED_ON": "{subject} was changed since, in a way that cannot be undone apart",
    "COST_ABOVE_RESERVED": "it cost {have} {subject}, and {need} was reserved",
    "TICKETS_TOO_MANY": "too many wait already",
    "LEASES_TOO_MANY": "too many leases are out",
    "LEASE_UNDER_PREDICATES": "a kernel with predicates of its callers grants no leases",
    "UNSPENT_ABOVE_GRANT": "{have} {subject} cannot come back: {need} was granted",
    "RECORD_TOO_LARGE": "what would be recorded is too large",
}

MODEL_END = "Propose another action that avoids all of this. Do not propose the same action again."


def words_of(check: Sequence[str]) -> str:
    """Return one check in words; empty where it passed."""
    name, passed, code, have, need, _ = check
    if passed == "1":
        return ""
    subject = name.partition(":")[2]
    return _WORDS[code].format(subject=subject, have=_decimal(have), need=_decimal(need), count=have, most=need)


def for_model(action: str, checks: Sequence[Sequence[str]], suggestions: Mapping[str, str]) -> str:
    """Return what the model is told of a rejection: every failed check, and what was suggested for it."""
    lines = [f"ACTION REJECTED: {action}" if action else "REJECTED"]
    for check in checks:
        if check[1] != "1" and check[5] != "1":
            advice = suggestions.get(check[0].partition(":")[2], "")
            lines.append(f"- {words_of(check)}" + (f" Suggestion: {advice}" if advice else ""))
    return "\n".join([*lines, MODEL_END])


def _decimal(micros: str) -> str:
    if not micros:
        return ""
    value = int(micros)
    whole, part = divmod(abs(value), MICRO)
    text = f"{whole}.{part:06}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 else text
