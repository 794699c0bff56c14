"""Reading conditions in CEL: Google's own library parses them and expands their macros; what it gives is made the tree that is evaluated (docs/adr/0056).

The library is needed to open a kernel with such conditions, and for patterns; it is loaded then, and is an extra (``interlock[cel]``). Its
evaluator is not used: it counts in binary fractions, and has no bound for what a loop builds up.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.domain.kernel import values
from interlock.domain.kernel.cel.conditions import CelLanguage, unavailable_here
from interlock.domain.kernel.cel.evaluation import FUNCTIONS, LARGEST_NUMBER, Tree
from interlock.domain.kernel.cel.kinds import require_condition
from interlock.domain.kernel.cel.names import Seen, spoken
from interlock.domain.kernel.expression import LONGEST, Declared

LONGEST_PATTERN = 200

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BOUND = "@"
"""Begins the names that the library makes up."""


def read(text: str, names: Declared) -> tuple[Tree, Sequence[Seen]]:
    """Return the tree of a condition, and what it speaks of.

    Refused with KERNEL_EXPRESSION_TOO_LONG or KERNEL_EXPRESSION_TOO_DEEP, KERNEL_CEL_INVALID (the library cannot read it),
    KERNEL_VARIABLE_UNKNOWN, KERNEL_CEL_UNSUPPORTED (a function or a literal that is none of a kernel's), KERNEL_CEL_TYPES,
    KERNEL_CEL_NOT_BOOLEAN, or KERNEL_CEL_UNAVAILABLE without the library.
    """
    if len(text) > LONGEST:
        raise invalid("KERNEL_EXPRESSION_TOO_LONG", f"an expression has at most {LONGEST} characters")
    if _CONTROL.search(text):
        raise invalid("KERNEL_CEL_INVALID", "a condition has no control characters")
    try:
        parsed = _environment().compile(text, disable_check=True).serialize()
    except RuntimeError as wrong:
        raise _unreadable(wrong) from None
    known = spoken(names)
    reader = _Reader(known)
    tree = reader.tree(_expression(parsed), frozenset())
    require_condition(tree, {name: known[name][0] for name in reader.named})
    return tree, [known[name][1] for name in reader.named]


def matches(text: str, expression: str) -> bool:
    """Tell whether a text contains what a pattern describes (RE2, as CEL has it)."""
    return _pattern().eval(data={"s": text, "p": expression}).value() is True


LANGUAGE = CelLanguage(read, matches)


def _library() -> Any:
    try:
        from cel_expr_python import cel
    except ImportError:
        raise unavailable_here() from None
    return cel


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Return the library's environment: it reads, and what names and functions there are is looked at here."""
    return _library().NewEnv()


@lru_cache(maxsize=1)
def _pattern() -> Any:
    cel = _library()
    return cel.NewEnv(variables={"s": cel.Type.STRING, "p": cel.Type.STRING}).compile("s.matches(p)")


def _unreadable(wrong: RuntimeError) -> Refused:
    why = re.sub(r"\s+", " ", str(wrong))[:300]
    if "recursion" in why:
        return invalid("KERNEL_EXPRESSION_TOO_DEEP", "the condition nests deeper than CEL is read here", why=why)
    return invalid("KERNEL_CEL_INVALID", "this cannot be read as CEL", why=why)


class _Reader:
    """Makes trees of the library's expressions (cel/expr/syntax.proto), which are read by their numbers of fields."""

    def __init__(self, known: Mapping[str, tuple[str, Seen]]) -> None:
        self._known = known
        self.named: dict[str, None] = {}

    def tree(self, expression: bytes, bound: frozenset[str]) -> Tree:
        """Return the tree of an expression; *bound* are the names of loops around it."""
        fields = _fields(expression)
        for number, read in (
            (3, _literal),
            (4, self._name),
            (5, self._selected),
            (6, self._call),
            (7, self._list),
            (9, self._fold),
        ):
            if number in fields:
                return read(fields[number][0], bound)
        raise _unsupported("a map or a message")

    def _name(self, ident: bytes, bound: frozenset[str]) -> Tree:
        return self._named(_text(ident, 1), bound)

    def _named(self, name: str, bound: frozenset[str]) -> Tree:
        if name not in bound:
            if name not in self._known:
                raise invalid(
                    "KERNEL_VARIABLE_UNKNOWN", f"{name} is nothing that a condition can speak of", name=name[:64]
                )
            self.named[name] = None
        return ["name", name]

    def _selected(self, select: bytes, bound: frozenset[str]) -> Tree:
        """Return a name with dots; nothing else has fields."""
        name = _dotted(select)
        if not name or name.partition(".")[0] in bound:
            raise _unsupported("a field of a value; whether x holds something is held.x, not has(x)")
        return self._named(name, frozenset())

    def _call(self, call: bytes, bound: frozenset[str]) -> Tree:
        fields, name = _fields(call), _text(call, 2)
        given = [*fields.get(1, ()), *fields.get(3, ())]
        if name not in FUNCTIONS:
            raise _unsupported(name)
        if len(given) != FUNCTIONS[name]:
            raise invalid(
                "KERNEL_CEL_TYPES", f"{name} takes {FUNCTIONS[name]} arguments", why=f"{len(given)} are given"
            )
        trees = [self.tree(one, bound) for one in given]
        if name == "matches":
            _require_pattern(trees[1])
        return ["call", name, trees]

    def _list(self, created: bytes, bound: frozenset[str]) -> Tree:
        return ["list", [self.tree(one, bound) for one in _fields(created).get(1, ())]]

    def _fold(self, comprehension: bytes, bound: frozenset[str]) -> Tree:
        fields = _fields(comprehension)
        item, result = _text(comprehension, 1), _text(comprehension, 3)
        if 8 in fields or item.startswith(_BOUND):
            raise _unsupported("a loop over two things at once")
        within = bound | {result}
        return [
            "fold", item, self.tree(fields[2][0], bound), result, self.tree(fields[4][0], bound),
            *(self.tree(fields[number][0], within | {item}) for number in (5, 6)), self.tree(fields[7][0], within),
        ]  # fmt: skip


def _literal(constant: bytes, _bound: frozenset[str]) -> Tree:
    for number, value in _fields(constant).items():
        if number == 2:
            return ["b", str(value[0])]
        if number == 3:
            return ["i", str(value[0] - 2 * LARGEST_NUMBER if value[0] >= LARGEST_NUMBER else value[0])]
        if number == 5:
            return ["d", str(_micros(struct.unpack("<d", value[0])[0]))]
        if number == 6:
            return ["s", value[0].decode()]
    raise _unsupported("null, an unsigned number or bytes")


def _micros(decimal: float) -> int:
    """Return the millionths of a literal; its text is exact up to fifteen digits, which is what a kernel's numbers have."""
    if abs(decimal) <= 10**9 and round(decimal, 6) == decimal:
        return round(decimal * values.MICRO)
    raise invalid(
        "KERNEL_CEL_UNSUPPORTED", "a number has at most six decimals, and is at most 10^9", what=str(decimal)[:64]
    )


def _require_pattern(tree: Tree) -> None:
    if tree[0] != "s" or len(tree[1]) > LONGEST_PATTERN:
        raise _unsupported(f"a pattern that is not a text of at most {LONGEST_PATTERN} characters")
    if str(_pattern().eval(data={"s": "", "p": tree[1]}).type()) != "BOOL":
        raise invalid("KERNEL_CEL_INVALID", "this cannot be read as CEL", why="the pattern cannot be read")


def _unsupported(what: str) -> Refused:
    return invalid("KERNEL_CEL_UNSUPPORTED", f"not in a condition: {what}"[:300], what=what[:64])


def _dotted(select: bytes) -> str:
    """Return a chain of names, such as ``left.usd``; empty for anything else."""
    fields = _fields(select)
    if 3 in fields or 1 not in fields:
        return ""
    operand = _fields(fields[1][0])
    before = _text(operand[4][0], 1) if 4 in operand else _dotted(operand[5][0]) if 5 in operand else ""
    return f"{before}.{_text(select, 2)}" if before else ""


def _expression(serialized: bytes) -> bytes:
    """Return the expression of what the library serialises: ``google.protobuf.Any`` of ``cel.expr.ParsedExpr``."""
    return bytes(_fields(_fields(serialized)[2][0])[2][0])


def _text(message: bytes, number: int) -> str:
    return str(_fields(message).get(number, [b""])[0], "utf-8")


def _fields(message: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message of protobuf by number: integers, eight bytes, or bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        value: Any
        if kind == 0:
            value, at = _varint(message, at)
        else:
            size = 8
            if kind == 2:
                size, at = _varint(message, at)
            elif kind != 1:
                raise ValueError("a field of another kind")
            value, at = message[at : at + size], at + size
        found.setdefault(number, []).append(value)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at
