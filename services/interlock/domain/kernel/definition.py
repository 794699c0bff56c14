"""What a kernel enforces, checked, and as fields of the store's hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.errors import conflict, exhausted, invalid
from interlock.domain.ids import SessionId
from interlock.domain.kernel import values
from interlock.domain.kernel.cel.conditions import CelLanguage, kept, unavailable_here, verdicts
from interlock.domain.kernel.cel.evaluation import HOLDS
from interlock.domain.kernel.cel.names import ACTION, AFTER, BEFORE, COST, LEFT, shown_of
from interlock.domain.kernel.expression import Declared, ExpressionView, Program, compiled, windows
from interlock.domain.kernel.state import Fields, KernelRecord, Resource, linked, refusal

MOST_RESOURCES, MOST_VARIABLES, MOST_INVARIANTS, MOST_ACTIONS = 16, 1_024, 64, 1_024
MOST_CEL = 16
"""Conditions in CEL: each takes its time in the session service."""
MOST_EFFECTS, MOST_PRECONDITIONS, LONGEST_SUGGESTION, LONGEST_NAME = 32, 16, 500, 200
LARGEST_DEFINITION = 49_152

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_INVARIANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:,-]{0,127}", re.ASCII)
_ACTION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Condition:
    """A condition on the state after each action: an expression, one in CEL, or a predicate of the caller's by its hash."""

    name: str
    expression: str
    blocking: bool
    suggestion: str = ""
    predicate_hash: str = ""
    cel: str = ""


@dataclass(frozen=True)
class RegisteredAction:
    """What an agent can name. Effects are variable, mode and stored operand; costs are millionths."""

    id: str
    name: str
    effects: Sequence[tuple[str, str, str]]
    costs: Sequence[tuple[str, int]]
    preconditions: Sequence[str] = ()
    emergency: bool = False
    irreversible: bool = False
    compensation: str = ""


@dataclass(frozen=True)
class Definition:
    """A kernel as it is opened. Variables are stored values by name; their first letter is the type."""

    resources: Mapping[str, Resource]
    variables: Mapping[str, str]
    invariants: Sequence[Condition]
    actions: Sequence[RegisteredAction]
    open_registry: bool

    def names(self) -> Declared:
        """Return what expressions may speak of."""
        kinds = {name: value[0] for name, value in self.variables.items()}
        return Declared(kinds, frozenset(one.id for one in self.actions), frozenset(self.resources))


def kernel_id_of(scope: str, root: str, name: str) -> SessionId:
    """Return the id of a kernel's audit chain. It holds for the caller's scope, and for a session tree where there is one."""
    told = json.dumps(["kernel", scope, root, checked_name(name)])
    return SessionId("crp_sess_" + hashlib.sha256(told.encode()).hexdigest()[:32])


def checked_name(name: str) -> str:
    """Return a name. Refused with KERNEL_NAME_INVALID."""
    if not _NAME.fullmatch(name):
        raise invalid("KERNEL_NAME_INVALID", "a name has 1 to 64 letters, digits, dots, hyphens or underscores")
    return name


def checked_action(action_id: str) -> str:
    """Return the id of an action. Refused with KERNEL_NAME_INVALID."""
    if not _ACTION.fullmatch(action_id):
        raise invalid(
            "KERNEL_NAME_INVALID", "an action's id has 1 to 128 letters, digits, dots, hyphens, underscores or colons"
        )
    return action_id


def _checked_invariant(name: str) -> str:
    if not _INVARIANT.fullmatch(name):
        message = "an invariant's name has 1 to 128 letters, digits, dots, hyphens, underscores, colons or commas"
        raise invalid("KERNEL_NAME_INVALID", message)
    return name


def checked_key(key: str) -> str:
    """Return an idempotency key. Refused with KERNEL_KEY_INVALID."""
    if not _KEY.fullmatch(key):
        raise invalid("KERNEL_KEY_INVALID", "a key has 1 to 128 printable ASCII characters without spaces")
    return key


def checked_amount(micros: int) -> int:
    """Return an amount. Refused with KERNEL_AMOUNT_INVALID for a negative one, or one above 10^15 millionths."""
    if not 0 <= micros <= values.MOST:
        raise invalid("KERNEL_AMOUNT_INVALID", f"an amount is from 0 to {values.MOST} millionths")
    return micros


def opened(
    definition: Definition,
    kernel_id: str,
    now_ms: int,
    *,
    owner: Mapping[str, str] | None = None,
    cel: CelLanguage | None = None,
) -> tuple[Fields, KernelRecord]:
    """Return the fields of a new kernel, and its first record. Refused where the definition is not as it must be.

    *owner* says whose it is: a person who decides about it must not be its caller. *cel* reads conditions in CEL; without it a definition
    with one is refused with KERNEL_CEL_UNAVAILABLE.
    """
    _check_sizes(definition)
    names = definition.names()
    programs = [(one, compiled(one.expression, names)) for one in definition.invariants if one.expression]
    spans: dict[str, int] = {}
    for _, program in programs:
        for name, seconds in windows(program).items():
            spans[name] = max(spans.get(name, 0), seconds)
    fields = registered(definition.variables, definition.actions, names) | {
        "version": "1", "steps": "0", "stopped": "0", "last": str(now_ms), "live": "",
        "mode": "open" if definition.open_registry else "closed",
        "def": contract(definition),
        "res": " ".join(definition.resources),
        "maxsteps": _most_steps(definition.resources),
        "inv": _dumped([[one.name, _enforced(one), program] for one, program in programs]),
        "pred": _dumped([[one.name, _enforced(one), one.predicate_hash] for one in definition.invariants if one.predicate_hash]),
        "win": _dumped({name: str(seconds) for name, seconds in spans.items()}),
        "named": str(len(definition.variables) + len(definition.actions)),
        **{f"r:{name}": one.text for name, one in definition.resources.items()},
    }  # fmt: skip
    require_base(fields, [(one.name, program) for one, program in programs if one.blocking])
    fields |= _conditions(definition, fields, cel)
    data = _dumped({
        "sequence": "1", "previous": "", "at_ms": str(now_ms), "action": "", "key": "", "approved": "1", "checks": [],
        "costs": [], "version": "1", "changes": fields, "dropped": [], "moments": [], "kernel_id": kernel_id, **(owner or {}),
    })  # fmt: skip
    if len(data.encode()) > LARGEST_DEFINITION:
        raise refusal("KERNEL_TOO_LARGE")
    record = KernelRecord(1, "", linked("", data), "KERNEL_OPENED", 2, data)
    return fields | {"link": record.link}, record


def _conditions(definition: Definition, fields: Fields, language: CelLanguage | None) -> Fields:
    """Return the field of conditions in CEL, where there are any."""
    told = [(one.name, _enforced(one), one.cel) for one in definition.invariants if one.cel]
    if not told:
        return {}
    if language is None:
        raise unavailable_here()
    found = {"cel": kept(told, definition.names(), language)}
    require_cel_base({**fields, **found}, language)
    return found


def registered(variables: Mapping[str, str], actions: Sequence[RegisteredAction], names: Declared) -> Fields:
    """Return the fields of variables and actions. Refused where an action is not as it must be."""
    fields = {f"v:{checked_name(name)}": value for name, value in variables.items()}
    named = {one.id: one for one in actions}
    for one in actions:
        if f"a:{checked_action(one.id)}" in fields:
            raise invalid("KERNEL_DUPLICATE", "an action is named twice", name=one.id)
        _check_compensation(one, named.get(one.compensation))
        fields[f"a:{one.id}"] = _action(one, names)
    return fields


def _check_compensation(one: RegisteredAction, other: RegisteredAction | None) -> None:
    """A compensation is registered with its action, and free: it must be possible when nothing else is."""
    if not one.compensation:
        return
    free = other is not None and not (other.costs or other.emergency or other.compensation or other.preconditions)
    if not free or one.emergency:
        message = "a compensation is named with its action, and has no costs, no preconditions and no compensation"
        raise invalid("KERNEL_COMPENSATION_INVALID", message, name=one.id)


def contract(definition: Definition) -> str:
    """Return what every process that joins a kernel must agree on, as canonical JSON."""
    return _dumped({
        "resources": {name: [one.limit, one.min_cost] for name, one in definition.resources.items()},
        "invariants": [
            [one.name, one.expression, _enforced(one), one.suggestion, one.predicate_hash, *([one.cel] if one.cel else [])]
            for one in definition.invariants
        ],
        "open_registry": definition.open_registry,
    })  # fmt: skip


def require_same(known: str, wanted: str) -> None:
    """Refuse a definition that is not the kernel's, with KERNEL_DEFINITION_DIFFERS and the first difference."""
    old, new = json.loads(known), json.loads(wanted)
    for part in old:
        if old[part] != new[part]:
            raise conflict(
                "KERNEL_DEFINITION_DIFFERS", f"the kernel of this name has other {part.replace('_', ' ')}",
                part=part, known=_dumped(old[part])[:500], wanted=_dumped(new[part])[:500],
            )  # fmt: skip


def _check_sizes(definition: Definition) -> None:
    bounds = (
        ("resources", len(definition.resources), MOST_RESOURCES),
        ("variables", len(definition.variables), MOST_VARIABLES),
        ("invariants", len(definition.invariants), MOST_INVARIANTS),
        ("actions", len(definition.actions), MOST_ACTIONS),
    )
    for what, count, most in bounds:
        if count > most:
            raise exhausted("KERNEL_TOO_LARGE", f"a kernel has at most {most} {what}", what=what, limit=str(most))
    for name, one in definition.resources.items():
        checked_name(name)
        checked_amount(one.limit)
        checked_amount(one.min_cost)
    if sum(bool(one.cel) for one in definition.invariants) > MOST_CEL:
        raise exhausted(
            "KERNEL_TOO_LARGE", f"a kernel has at most {MOST_CEL} conditions in CEL", what="cel", limit=str(MOST_CEL)
        )
    names = [_checked_invariant(one.name) for one in definition.invariants]
    if len(set(names)) != len(names):
        raise invalid("KERNEL_DUPLICATE", "an invariant is named twice")
    for invariant in definition.invariants:
        if [bool(invariant.expression), bool(invariant.predicate_hash), bool(invariant.cel)].count(True) != 1:
            raise invalid(
                "KERNEL_INVARIANT_INVALID",
                "an invariant is an expression, a condition in CEL or a predicate",
                name=invariant.name,
            )
        if invariant.predicate_hash and not _HASH.fullmatch(invariant.predicate_hash):
            raise invalid(
                "KERNEL_INVARIANT_INVALID", "predicate_hash has 64 lower-case hex digits", name=invariant.name
            )
        if len(invariant.suggestion) > LONGEST_SUGGESTION:
            raise invalid("KERNEL_INVARIANT_INVALID", f"a suggestion has at most {LONGEST_SUGGESTION} characters")
        values.text(invariant.suggestion)


def _most_steps(resources: Mapping[str, Resource]) -> str:
    bounds = [one.limit // one.min_cost for one in resources.values() if one.min_cost]
    return str(min(bounds)) if bounds else ""


def require_base(fields: Fields, programs: Iterable[tuple[str, Program]]) -> None:
    """Refuse a kernel whose blocking invariants do not hold from the beginning (T3, the base case), with KERNEL_INVARIANT_BROKEN."""
    view = ExpressionView(
        fields.__getitem__,
        fields.__getitem__,
        lambda _name, _seconds: 0,
        lambda name: Resource.of(fields[f"r:{name}"]).left,
    )
    for name, program in programs:
        if not view.holds(program):
            raise invalid("KERNEL_INVARIANT_BROKEN", "an invariant does not hold at the beginning", name=name)


def require_cel_base(fields: Fields, language: CelLanguage, only: Iterable[str] | None = None) -> None:
    """Do the same for the blocking conditions in CEL, or those named."""
    conditions = json.loads(fields["cel"])
    shown = shown_of(conditions["names"], {
        AFTER: lambda name: fields[f"v:{name}"], BEFORE: lambda name: fields[f"v:{name}"], COST: lambda _name: "n:0",
        LEFT: lambda name: f"n:{Resource.of(fields[f'r:{name}']).left}", ACTION: lambda _name: "s:",
    })  # fmt: skip
    said = verdicts(fields["cel"], shown, language.matches)
    for (name, how, _), one in zip(conditions["programs"], said, strict=True):
        if one != HOLDS and (how == "blocking" if only is None else name in only):
            raise invalid("KERNEL_INVARIANT_BROKEN", "an invariant does not hold at the beginning", name=name)


def _action(one: RegisteredAction, names: Declared) -> str:
    if len(one.effects) > MOST_EFFECTS or len(one.preconditions) > MOST_PRECONDITIONS:
        message = f"an action has at most {MOST_EFFECTS} effects and {MOST_PRECONDITIONS} preconditions"
        raise exhausted("KERNEL_TOO_LARGE", message, name=one.id)
    if one.emergency and (one.effects or one.costs):
        raise invalid("KERNEL_EMERGENCY_INVALID", "an emergency action has no effects and no costs", name=one.id)
    if len(one.name) > LONGEST_NAME:
        raise invalid("KERNEL_NAME_INVALID", f"an action's name has at most {LONGEST_NAME} characters", name=one.id)
    values.text(one.name)
    for variable, mode, operand in one.effects:
        kind = names.variables.get(variable)
        if kind is None:
            raise invalid(
                "KERNEL_VARIABLE_UNKNOWN", f"{one.id} changes a variable that is not declared", name=variable[:64]
            )
        if mode not in values.MODES or not values.fits(kind, mode, operand):
            raise invalid("KERNEL_EFFECT_INVALID", f"{one.id} cannot {mode} {variable} like this", name=variable)
    named = [name for name, _ in one.costs]
    for name, amount in one.costs:
        checked_amount(amount)
        if name not in names.resources:
            raise invalid("KERNEL_RESOURCE_UNKNOWN", f"{one.id} costs what the kernel does not have", name=name[:64])
    if len(set(named)) != len(named):
        raise invalid("KERNEL_DUPLICATE", f"{one.id} names a cost twice")
    return _dumped({
        "name": one.name,
        "effects": [list(effect) for effect in one.effects],
        "costs": [[name, str(amount)] for name, amount in one.costs],
        "preconditions": [compiled(text, names) for text in one.preconditions],
        "expressions": list(one.preconditions),
        "emergency": "1" if one.emergency else "0",
        "irreversible": "1" if one.irreversible else "0",
        **({"compensation": one.compensation} if one.compensation else {}),
    })  # fmt: skip


def _enforced(one: Condition) -> str:
    return "blocking" if one.blocking else "monitoring"


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
