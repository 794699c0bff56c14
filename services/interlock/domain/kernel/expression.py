"""The closed language of invariants and preconditions: bounds, sums, sizes, membership, sliding windows. It compiles to data.

    active_tasks <= 10 and size(tools) < 5
    "shell" not in tools            mode in ("read", "write")
    uses(send_email, 3600) <= 100   spent(usd, 60) + balance <= 20.5     left(usd) >= 1
    has(owner)                      sum(open_orders) < 1000
    progress >= before(progress)    not had(owner) or has(owner)

An expression becomes a list of steps for a stack. ``session/lua/kernel_step.lua`` runs the same steps; what cannot be calculated does
not hold. Nothing else can be said: no calls, no loops, no attribute of anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.domain.kernel import values
from interlock.domain.kernel.values import FLAG, LIST, MICRO, NUMBER, SET, TEXT

LONGEST, MOST_STEPS, DEEPEST, LONGEST_WINDOW_S = 1_000, 128, 16, 2_592_000

Step = list[str]
Program = list[Step]

_TOKEN = re.compile(
    r'\s*(?:(?P<number>(?:0|[1-9]\d*)(?:\.\d{1,6})?)(?![\w.])|(?P<text>"[^"\\]*")|(?P<word>[A-Za-z_][A-Za-z0-9_.:-]*)'
    r"|(?P<mark><=|>=|==|!=|[<>()+,-]))",
    re.ASCII,
)
_COMPARED = frozenset({"<", "<=", ">", ">=", "==", "!="})
_WORDS = frozenset({"and", "or", "not", "in", "true", "false"})


@dataclass(frozen=True)
class Declared:
    """What an expression may speak of: types of variables by name, ids of actions, names of resources."""

    variables: Mapping[str, str]
    actions: frozenset[str]
    resources: frozenset[str]


def compiled(text: str, names: Declared) -> Program:
    """Return the steps of an expression.

    Refused with KERNEL_EXPRESSION_INVALID (where, and why), KERNEL_EXPRESSION_TOO_LONG, KERNEL_EXPRESSION_TOO_DEEP,
    KERNEL_VARIABLE_UNKNOWN, KERNEL_ACTION_UNKNOWN or KERNEL_RESOURCE_UNKNOWN.
    """
    if len(text) > LONGEST:
        raise invalid("KERNEL_EXPRESSION_TOO_LONG", f"an expression has at most {LONGEST} characters")
    reader = _Reader(text, names)
    if reader.either(0) != FLAG or reader.token:
        raise reader.wrong("an expression is a condition")
    if len(reader.steps) > MOST_STEPS:
        raise invalid("KERNEL_EXPRESSION_TOO_LONG", f"an expression has at most {MOST_STEPS} parts")
    return reader.steps


def windows(program: Program) -> dict[str, int]:
    """Return what the expression looks back at: ``a:<action>`` or ``r:<resource>`` to seconds."""
    found: dict[str, int] = {}
    for step in program:
        if step[0] in {"uses", "spent"}:
            name = ("a:" if step[0] == "uses" else "r:") + step[1]
            found[name] = max(found.get(name, 0), int(step[2]))
    return found


class _Reader:
    """Reads an expression from left to right: or, and, not, comparison, sum, operand."""

    def __init__(self, text: str, names: Declared) -> None:
        self._text, self._names, self._at = text, names, 0
        self.steps: Program = []
        self.token, self._kind = "", ""
        self._next()

    def wrong(self, why: str) -> Refused:
        return invalid("KERNEL_EXPRESSION_INVALID", f"{why} (before character {self._at})", at=str(self._at))

    def _next(self) -> str:
        taken = self.token
        rest = self._text[self._at :]
        if not rest.strip():
            self.token, self._kind = "", "end"
            return taken
        found = _TOKEN.match(rest)
        if found is None or found.lastgroup is None:
            raise self.wrong("this cannot be read")
        self._at += found.end()
        self.token, self._kind = found[found.lastgroup], found.lastgroup
        return taken

    def _take(self, wanted: str) -> None:
        if self.token != wanted or self._kind == "text":
            raise self.wrong(f"{wanted} is expected")
        self._next()

    def _is(self, *words: str) -> bool:
        return self._kind != "text" and self.token in words

    def either(self, depth: int) -> str:
        if depth > DEEPEST:
            raise invalid("KERNEL_EXPRESSION_TOO_DEEP", f"an expression nests at most {DEEPEST} deep")
        return self._joined("or", lambda: self._joined("and", lambda: self._negated(depth)))

    def _joined(self, word: str, part: Callable[[], str]) -> str:
        kind = part()
        while self._is(word):
            self._next()
            if kind != FLAG or part() != FLAG:
                raise self.wrong(f"{word} joins conditions")
            self.steps.append([word])
        return kind

    def _negated(self, depth: int) -> str:
        count = 0
        while self._is("not"):
            self._next()
            count += 1
        kind = self._compared(depth)
        if count and kind != FLAG:
            raise self.wrong("not negates a condition")
        if count % 2:
            self.steps.append(["not"])
        return kind

    def _compared(self, depth: int) -> str:
        kind = self._sum(depth)
        negated = self._is("not")
        if negated:
            self._next()
            if not self._is("in"):
                raise self.wrong("in is expected")
        if self._is("in"):
            self._next()
            self._membership(kind)
            if negated:
                self.steps.append(["not"])
            return FLAG
        if self._kind == "mark" and self.token in _COMPARED:
            how = self._next()
            if self._sum(depth) != kind or (how not in {"==", "!="} and kind != NUMBER):
                raise self.wrong("only numbers are ordered, and only values of one type are compared")
            self.steps.append([how])
            return FLAG
        return kind

    def _membership(self, kind: str) -> None:
        if kind not in values.SCALARS:
            raise self.wrong("in looks for a number, a text or a flag")
        if self._is("("):
            self._next()
            options = [self._literal()]
            while self._is(","):
                self._next()
                options.append(self._literal())
            self._take(")")
            self.steps.append(["one", *options])
            return
        name = self._variable(LIST, SET)
        self.steps.append(["in", name])

    def _literal(self) -> str:
        sign = -1 if self._is("-") else 1
        if sign < 0:
            self._next()
        kind, token = self._kind, self._next()
        if kind == "number":
            return values.number(sign * micros_of(token))
        if kind == "text" and sign > 0:
            return values.text(token[1:-1])
        if token in {"true", "false"} and sign > 0:
            return values.flag(token == "true")  # noqa: S105 - a word of the language
        raise self.wrong("a number, a text, true or false is expected")

    def _sum(self, depth: int) -> str:
        if self._is("-"):
            self.steps.append(["n", "0"])
            kind = NUMBER
        else:
            kind = self._operand(depth)
        while self._is("+", "-"):
            how = self._next()
            if kind != NUMBER or self._operand(depth) != NUMBER:
                raise self.wrong("only numbers are added")
            self.steps.append([how])
        return kind

    def _operand(self, depth: int) -> str:
        if self._is("("):
            self._next()
            kind = self.either(depth + 1)
            self._take(")")
            return kind
        if self._kind in {"number", "text"} or self._is("true", "false"):
            literal = self._literal()
            self.steps.append([literal[0], literal[2:]])
            return literal[0]
        if self._kind != "word" or self.token in _WORDS:
            raise self.wrong("a value is expected")
        if self.token in _CALLS:
            return self._call()
        name = self._variable(NUMBER, TEXT, FLAG)
        self.steps.append(["v", name])
        return self._names.variables[name]

    def _call(self) -> str:
        what = self._next()
        self._take("(")
        kind, *wanted = _CALLS[what]
        step = [what, self._variable(*wanted) if wanted else self._named(what)]
        if what in {"uses", "spent"}:
            self._take(",")
            if self._kind != "number" or not self.token.isdecimal() or not 1 <= int(self.token) <= LONGEST_WINDOW_S:
                raise self.wrong(f"a window is 1 to {LONGEST_WINDOW_S} whole seconds")
            step.append(self._next())
        self._take(")")
        self.steps.append(step)
        return kind or self._names.variables[step[1]]

    def _named(self, what: str) -> str:
        name, known = self.token, self._names.actions if what == "uses" else self._names.resources
        if self._kind != "word" or name not in known:
            reason = "KERNEL_ACTION_UNKNOWN" if what == "uses" else "KERNEL_RESOURCE_UNKNOWN"
            raise invalid(reason, f"{name or 'nothing'} is not declared", name=name[:64])
        return self._next()

    def _variable(self, *kinds: str) -> str:
        name = self.token
        kind = self._names.variables.get(name) if self._kind == "word" else None
        if kind is None:
            raise invalid("KERNEL_VARIABLE_UNKNOWN", f"{name or 'nothing'} is not a declared variable", name=name[:64])
        if kind not in kinds:
            raise self.wrong(f"{name} is of another type")
        return self._next()


_CALLS: Mapping[str, tuple[str, ...]] = {
    "size": (NUMBER, LIST, SET),
    "sum": (NUMBER, LIST, SET),
    "has": (FLAG, NUMBER, TEXT, FLAG, LIST, SET),
    "had": (FLAG, NUMBER, TEXT, FLAG, LIST, SET),
    "before": ("", NUMBER, TEXT, FLAG),
    "uses": (NUMBER,),
    "spent": (NUMBER,),
    "left": (NUMBER,),
}
"""Function → its type, and the types of the variable that it takes; an action or a resource where there are none.
``before`` is of its variable's type."""


def micros_of(decimal: str) -> int:
    """Return the millionths of a decimal such as 20.5."""
    whole, _, fraction = decimal.partition(".")
    return int(whole) * MICRO + int(fraction.ljust(6, "0") or 0)


class ExpressionView:
    """What an expression sees: ``read(field)`` of the store's hash after and ``old(field)`` before, sums of windows, what is left."""

    def __init__(
        self, read: Callable[[str], str], old: Callable[[str], str], window: Callable[[str, int], int], left: Callable[[str], int]
    ) -> None:  # fmt: skip
        self._read, self._old, self._window, self._left = read, old, window, left

    def value(self, step: Step) -> Any:
        """Return what one reading step puts on the stack; ``None`` where it cannot be calculated."""
        what, name = step[0], step[1]
        if what in values.SCALARS:
            return _loaded(f"{what}:{name}")
        if what == "uses":
            return self._window(f"a:{name}", int(step[2])) * MICRO
        if what in {"spent", "left"}:
            return self._left(name) if what == "left" else self._window(f"r:{name}", int(step[2]))
        held = (self._old if what in {"before", "had"} else self._read)(f"v:{name}")
        if what in {"has", "had"}:
            return not values.absent(held)
        if what == "size":
            return len(values.items_of(held)) * MICRO
        return _summed(held) if what == "sum" else _loaded(held)

    def holds(self, program: Program) -> bool:
        """Tell whether an expression holds; what cannot be calculated does not."""
        stack: list[Any] = []
        for step in program:
            what = step[0]
            if what == "in":
                value: Any = _scalar(stack.pop()) in values.items_of(self._read(f"v:{step[1]}"))
            elif what == "one":
                value = _scalar(stack.pop()) in step[1:]
            elif what == "not":
                value = not stack.pop()
            elif what in _JOIN:
                right = stack.pop()
                value = _JOIN[what](stack.pop(), right)
            else:
                value = self.value(step)
            if value is None or (not isinstance(value, bool | str) and abs(value) > values.LARGEST):
                return False
            stack.append(value)
        return stack == [True]


_JOIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
}


def _loaded(value: str) -> Any:
    kind, payload = value[0], "" if values.absent(value) else value[2:]
    if kind == NUMBER:
        return int(payload or 0)
    return payload == "1" if kind == FLAG else f"s:{payload}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return values.flag(value)
    return value if isinstance(value, str) else f"n:{value}"


def _summed(value: str) -> int | None:
    total = 0
    for item in values.items_of(value):
        if item[0] != NUMBER:
            return None
        total += int(item[2:])
        if abs(total) > values.LARGEST:
            return None
    return total
