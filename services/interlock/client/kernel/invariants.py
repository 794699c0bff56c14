"""The peer's invariants by name (KRN-14). Names and arguments are those of ``clampai.invariants``.

Bounds of numbers and orders become expressions, which the kernel evaluates in the step that commits: they cannot be raced and need no
second round trip. The others are predicates of this process, evaluated on the version that is committed. Each can be tried with ``check``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from interlock.client.kernel import patterns
from interlock.client.kernel.expressions import bound, listed, variable
from interlock.client.kernel.model import Invariant, State


def rate_limit_invariant(key: str, max_count: int, **more: Any) -> Invariant:
    """Hold where the number *key* is at most *max_count*. What is absent counts as 0."""
    return _at_most(f"rate_limit:{key}", key, max_count, f"wait, or do with the {max_count} that are allowed", more)


def resource_ceiling_invariant(key: str, ceiling: float, **more: Any) -> Invariant:
    """Hold where the number *key* is at most *ceiling*. What is absent counts as 0."""
    return _at_most(f"resource_ceiling:{key}", key, ceiling, f"stay within {ceiling}", more)


def max_retries_invariant(key: str, limit: int, **more: Any) -> Invariant:
    """Hold where the counter *key* is at most *limit*. What is absent counts as 0."""
    return _at_most(f"max_retries:{key}", key, limit, "choose another action, or ask a person", more)


def file_operation_limit_invariant(key: str = "files_modified", max_ops: int = 50, **more: Any) -> Invariant:
    """Hold where at most *max_ops* files were changed, by the counter *key*."""
    return rate_limit_invariant(key, max_ops, **{"suggestion": "commit what was changed before changing more", **more})


def api_call_limit_invariant(key: str = "api_calls", max_calls: int = 100, **more: Any) -> Invariant:
    """Hold where at most *max_calls* calls were made, by the counter *key*."""
    return rate_limit_invariant(key, max_calls, **{"suggestion": "use earlier answers, or join requests", **more})


def email_safety_invariant(**more: Any) -> Invariant:
    """Hold while the number ``emails_deleted`` is 0."""
    return Invariant(
        "email_safety:no_delete", lambda s: (s.get("emails_deleted", 0) or 0) == 0, expression="emails_deleted == 0",
        variables={"emails_deleted": "n"}, **_given(more, "ask a person before deleting e-mail"),
    )  # fmt: skip


def value_range_invariant(key: str, min_val: float, max_val: float, **more: Any) -> Invariant:
    """Hold where the number *key* is from *min_val* to *max_val*, or absent."""
    held, least, most = variable(key), bound(min_val), bound(max_val)
    exact = bool(held and least and most)
    return Invariant(
        f"value_range:{key}",
        lambda s: s.get(key) is None or min_val <= float(s.get(key)) <= max_val,
        expression=f"not has({held}) or {held} >= {least} and {held} <= {most}" if exact else "",
        variables={key: "n"}, **_given(more, f"keep {key} from {min_val} to {max_val}"),
    )  # fmt: skip


def allowed_values_invariant(key: str, allowed: Collection[Any], **more: Any) -> Invariant:
    """Hold where *key* is one of *allowed*."""
    options = sorted(allowed, key=repr)
    text = listed(key, options)
    return Invariant(
        f"allowed_values:{key}", lambda s: s.get(key) in options, expression=text,
        variables={key: "s" if text and isinstance(options[0], str) else "n"} if text else {},
        **_given(more, f"choose one of {options}"),
    )  # fmt: skip


def monotone_increasing_invariant(key: str, initial_value: float = 0.0, **more: Any) -> Invariant:
    """Hold where the number *key* never falls, and is never below *initial_value*; over all processes, unlike the peer's."""
    held, least = variable(key), bound(initial_value)
    if not held or not least:
        raise ValueError(
            "the key is a name of the language of invariants, and the first value a number of six decimals"
        )
    text = f"(not has({held}) or {held} >= {least}) and (not had({held}) or has({held}) and {held} >= before({held}))"
    return _ordered(f"monotone_increasing:{key}", key, text, more, lambda new, old: new >= max(old or 0, initial_value))


def monotone_decreasing_invariant(key: str, initial_value: float = math.inf, **more: Any) -> Invariant:
    """Hold where the number *key* never rises, and is never above *initial_value*; over all processes, unlike the peer's."""
    held, most = variable(key), bound(initial_value) or ("" if math.isfinite(initial_value) else "inf")
    if not held or not most:
        raise ValueError(
            "the key is a name of the language of invariants, and the first value a number of six decimals"
        )
    first = f"(not has({held}) or {held} <= {most}) and " if most != "inf" else ""
    text = f"{first}(not had({held}) or has({held}) and {held} <= before({held}))"
    return _ordered(
        f"monotone_decreasing:{key}", key, text, more,
        lambda new, old: new <= min(math.inf if old is None else old, initial_value),
    )  # fmt: skip


def no_delete_invariant(key: str, **more: Any) -> Invariant:
    """Hold where *key* is there, and neither false, 0 nor empty."""
    return Invariant(f"no_delete:{key}", lambda s: bool(s.get(key)), **_given(more, f"keep {key}"))


def non_empty_invariant(key: str, **more: Any) -> Invariant:
    """Hold where *key* is there and not empty."""
    return Invariant(f"non_empty:{key}", lambda s: bool(s.get(key)), **_given(more, f"fill {key} first"))


def read_only_keys_invariant(keys: Collection[str], initial_state: State, **more: Any) -> Invariant:
    """Hold where *keys* are as in *initial_state*."""
    frozen = {name: initial_state.get(name) for name in sorted(keys)}
    return Invariant(
        f"read_only:{','.join(frozen)}", lambda s: all(s.get(name) == held for name, held in frozen.items()),
        **_given(more, f"leave {list(frozen)} as they are"),
    )  # fmt: skip


def required_fields_invariant(fields: Collection[str], **more: Any) -> Invariant:
    """Hold where each of *fields* is there."""
    names = sorted(fields)
    return Invariant(
        f"required_fields:{','.join(names)}", lambda s: all(s.get(name) is not None for name in names),
        **_given(more, f"set {names} first"),
    )  # fmt: skip


def human_approval_gate_invariant(approval_key: str, **more: Any) -> Invariant:
    """Hold where *approval_key* is true: nothing is done before a person sets it."""
    return Invariant(
        f"human_approval_gate:{approval_key}", lambda s: bool(s.get(approval_key)), **_given(more, "ask a person first")
    )


def no_action_after_flag_invariant(flag_key: str, **more: Any) -> Invariant:
    """Hold while *flag_key* is not true."""
    return Invariant(
        f"no_action_after_flag:{flag_key}", lambda s: not s.get(flag_key), **_given(more, "begin another task")
    )


def list_length_invariant(key: str, max_length: int, **more: Any) -> Invariant:
    """Hold where the list, set or text *key* has at most *max_length* items."""
    return Invariant(
        f"list_length:{key}", lambda s: len(s.get(key) or ()) <= max_length, **_given(more, "remove something first")
    )


def string_length_invariant(key: str, max_length: int, **more: Any) -> Invariant:
    """Hold where *key*, written as text, has at most *max_length* characters."""
    return Invariant(f"string_length:{key}", lambda s: len(_text(s, key)) <= max_length, **_given(more, "shorten it"))


def no_duplicate_ids_invariant(key: str, **more: Any) -> Invariant:
    """Hold where the list *key* holds nothing twice."""
    return Invariant(
        f"no_duplicate_ids:{key}", lambda s: len(s.get(key) or ()) == len(set(s.get(key) or ())),
        **_given(more, "leave out what is there already"),
    )  # fmt: skip


def no_sensitive_substring_invariant(
    key: str, forbidden: Collection[str], *, case_sensitive: bool = False, **more: Any
) -> Invariant:
    """Hold where the text *key* contains none of *forbidden*."""
    parts = sorted(one if case_sensitive else one.lower() for one in forbidden)

    def clean(state: State) -> bool:
        held = _text(state, key) if case_sensitive else _text(state, key).lower()
        return not any(one in held for one in parts)

    return Invariant(f"no_sensitive_substring:{key}", clean, **_given(more, "take out what must not be there"))


def no_regex_match_invariant(key: str, pattern: str, **more: Any) -> Invariant:
    """Hold where the text *key* does not match *pattern*, of RE2: linear in the text. Raises ``ValueError`` for another pattern."""
    patterns.compiled(pattern)
    return Invariant(
        f"no_regex:{key}", lambda s: not patterns.found(pattern, _text(s, key)),
        **_given(more, "take out what must not be there"),
    )  # fmt: skip


def pii_guard_invariant(*keys: str, **more: Any) -> Invariant:
    """Hold where the texts *keys* have no US social security number, card number, e-mail address or North American telephone number."""
    return Invariant(
        f"pii_guard:{','.join(keys)}", lambda s: not any(patterns.personal(_text(s, one)) for one in keys),
        **_given(more, "take personal data out"),
    )  # fmt: skip


def time_window_rate_invariant(key: str, max_count: int, window_seconds: float, **more: Any) -> Invariant:
    """Hold where the list *key* has fewer than *max_count* times, seconds since the epoch, within the last *window_seconds*.

    A kernel's numbers end at 10^9, so it holds such times as texts (``str(time.time())``). By this process's clock; ``uses(action,
    seconds)`` in an expression counts by the kernel's own, and cannot be raced.
    """

    def rare(state: State) -> bool:
        held, now = state.get(key), time.time()
        return sum(now - one <= window_seconds for one in patterns.times(held)) < max_count

    return Invariant(f"time_window_rate:{key}", rare, **_given(more, f"wait up to {window_seconds} seconds"))


def json_schema_invariant(key: str, schema: Mapping[str, type], **more: Any) -> Invariant:
    """Hold where *key* is absent, or an object whose fields have the types of *schema*. A kernel holds an object as its JSON text."""
    wanted = dict(sorted(schema.items()))
    return Invariant(
        f"json_schema:{key}", lambda s: patterns.typed(s.get(key), wanted), **_given(more, f"give fields the types {wanted}")
    )  # fmt: skip


def custom_invariant(name: str, validator: Callable[[Any], bool], key: str, **more: Any) -> Invariant:
    """Hold where *validator* holds for the value of *key*."""
    return Invariant(name, lambda s: bool(validator(s.get(key))), **more)


def _at_most(name: str, key: str, most: float, advice: str, more: Mapping[str, Any]) -> Invariant:
    held, number = variable(key), bound(most)
    return Invariant(
        name, lambda s: float(s.get(key, 0) or 0) <= most, expression=f"{held} <= {number}" if held and number else "",
        variables={key: "n"}, **_given(more, advice),
    )  # fmt: skip


def _ordered(
    name: str, key: str, text: str, more: Mapping[str, Any], fits: Callable[[float, float | None], bool]
) -> Invariant:
    """Return an invariant that the kernel evaluates; here it remembers what it saw last, to be tried out."""
    seen: list[float | None] = [None]

    def holds(state: State) -> bool:
        new = state.get(key)
        if new is None:
            return seen[0] is None
        if not fits(float(new), seen[0]):
            return False
        seen[0] = float(new)
        return True

    return Invariant(name, holds, expression=text, variables={key: "n"}, **_given(more, f"leave {key} as it was"))


def _given(more: Mapping[str, Any], advice: str) -> dict[str, Any]:
    """Return the peer's further arguments: enforcement, blocking where absent, and a suggestion."""
    return {"enforcement": "blocking", **more, "suggestion": more.get("suggestion") or advice}


def _text(state: State, key: str) -> str:
    held = state.get(key)
    return "" if held is None else str(held)


__all__ = [name for name in dir() if name.endswith("_invariant")]
