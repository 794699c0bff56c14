"""What a condition in CEL says of a state. It always ends: every step that it takes is counted (BUDGET).

A condition is a tree, as ``session/kernel/cel_language.py`` reads it: ``["i", "5"]`` and ``["d", "500000"]`` numbers, whole or in
millionths, ``["s", text]``, ``["b", "1"]``, ``["name", name]``, ``["list", trees]``, ``["call", function, trees]``, and ``["fold", item,
range, result, first, while, next, last]`` for what ``all``, ``exists``, ``exists_one``, ``map`` and ``filter`` stand for.

Numbers are exact. CEL's int is an ``int``; CEL's double is a ``Fraction``, so that 0.1 + 0.2 is 0.3 and a third times three is one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeGuard

from interlock.domain.kernel import values

Tree = Sequence[Any]
Bindings = Mapping[str, Any]
Matches = Callable[[str, str], bool]
"""Whether a text contains what a pattern describes, in time linear in both (RE2)."""

BUDGET = 20_000
"""Steps of one condition: some 20 ms. One pass over 1,000 items takes about seven for each."""
LONGEST_TEXT, MOST_ITEMS, LARGEST_NUMBER, MOST_DIGITS = 16_384, 1_000, 2**63, 10**36

HOLDS, BROKEN, FAILED, TOO_COSTLY = "1", "0", "e", "b"
CODES = {BROKEN: "INVARIANT_BROKEN", FAILED: "INVARIANT_FAILED", TOO_COSTLY: "INVARIANT_TOO_COSTLY"}
"""What a condition can say → the code of its check; nothing but *holds* passes."""


class _CannotTellError(Exception):
    """Something cannot be calculated: CEL's error, which ``&&`` and ``||`` can do without."""


class _SpentError(Exception):
    """It took too many steps."""


def verdict_of(tree: Tree, bindings: Bindings, matches: Matches) -> str:
    """Return what a condition says: HOLDS, BROKEN, FAILED for what cannot be calculated, or TOO_COSTLY."""
    try:
        said = _Evaluation(matches).value(tree, bindings)
    except _CannotTellError:
        return FAILED
    except _SpentError:
        return TOO_COSTLY
    if not isinstance(said, bool):
        return FAILED
    return HOLDS if said else BROKEN


def loaded(value: str) -> Any:
    """Return a stored value as conditions have it: exact numbers, texts, truth values, lists. One that holds nothing is 0, empty or false."""
    kind, payload = value[0], "" if values.absent(value) else value[2:]
    if kind == values.NUMBER:
        return Fraction(int(payload or 0), values.MICRO)
    if kind == values.TEXT:
        return payload
    if kind == values.FLAG:
        return payload == "1"
    return [loaded(one) for one in values.items_of(value)]


class _Evaluation:
    """One condition, evaluated once."""

    def __init__(self, matches: Matches) -> None:
        self._left, self._matches = BUDGET, matches
        self._counted: Mapping[str, Callable[..., Any]] = {
            "_+_": self._sum,
            "_==_": self._equal,
            "_!=_": lambda a, b: not self._equal(a, b),
            "@in": self._contains,
            "matches": self._like,
            "sum": self._total,
        }

    def value(self, tree: Tree, names: Bindings) -> Any:
        """Return the value of a tree."""
        self._spend(1)
        what = tree[0]
        if what == "name":
            return _told(names[tree[1]])
        if what == "call":
            return self._call(tree[1], tree[2], names)
        if what == "fold":
            return self._fold(tree[1:], names)
        if what == "list":
            return [self.value(one, names) for one in tree[1]]
        return _LITERALS[what](tree[1])

    def _fold(self, parts: Sequence[Any], names: Bindings) -> Any:
        item, over, result, first, while_, next_, last = parts
        items = self.value(over, names)
        if not isinstance(items, list):
            raise _CannotTellError
        within = {**names, result: self.value(first, names)}
        for one in items:
            within[item] = one
            if self.value(while_, within) is not True:
                break
            within[result] = self._kept(next_, within)
        return self.value(last, {**names, result: within[result]})

    def _kept(self, tree: Tree, names: Bindings) -> Any:
        """Return a value that a loop goes on with; that it cannot be told is one too, which a later item may make up for."""
        try:
            return self.value(tree, names)
        except _CannotTellError:
            return _CANNOT_TELL

    def _call(self, name: str, trees: Sequence[Tree], names: Bindings) -> Any:
        if name in {"_&&_", "_||_"}:
            return self._joined(trees, names, decides=name == "_||_")
        if name == "_?_:_":
            return self.value(trees[1 if self._flag(trees[0], names) else 2], names)
        if name == "@not_strictly_false":
            return self._not_false(trees[0], names)
        given = [self.value(one, names) for one in trees]
        counted = self._counted.get(name)
        return counted(*given) if counted else _FUNCTIONS[name](*given)

    def _joined(self, trees: Sequence[Tree], names: Bindings, *, decides: bool) -> bool:
        """Return ``&&`` or ``||``: one side that decides is enough, whatever became of the other."""
        cannot = False
        for one in trees:
            try:
                if self._flag(one, names) == decides:
                    return decides
            except _CannotTellError:
                cannot = True
        if cannot:
            raise _CannotTellError
        return not decides

    def _flag(self, tree: Tree, names: Bindings) -> bool:
        value = self.value(tree, names)
        if not isinstance(value, bool):
            raise _CannotTellError
        return value

    def _not_false(self, tree: Tree, names: Bindings) -> bool:
        """Tell whether a loop goes on: what cannot be calculated may be decided by a later item."""
        try:
            return self.value(tree, names) is not False
        except _CannotTellError:
            return True

    def _sum(self, a: Any, b: Any) -> Any:
        if isinstance(a, str) and isinstance(b, str):
            self._spend((len(a) + len(b)) // 64)
            return _bounded(a + b, LONGEST_TEXT)
        if isinstance(a, list) and isinstance(b, list):
            self._spend((len(a) + len(b)) // 64)
            return _bounded(a + b, MOST_ITEMS)
        return _calculated(operator.add, a, b)

    def _equal(self, a: Any, b: Any) -> bool:
        self._spend(1)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(self._equal(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, str) and isinstance(b, str):
            self._spend(min(len(a), len(b)) // 64)
        return _kind(a) == _kind(b) and bool(a == b)

    def _contains(self, a: Any, b: Any) -> bool:
        if not isinstance(b, list):
            raise _CannotTellError
        return any(self._equal(a, one) for one in b)

    def _like(self, a: Any, b: Any) -> bool:
        if not isinstance(a, str) or not isinstance(b, str):
            raise _CannotTellError
        self._spend(15 + len(a) // 16)
        return self._matches(a, b)

    def _total(self, items: Any) -> Fraction:
        if not isinstance(items, list) or not all(map(_is_number, items)):
            raise _CannotTellError
        self._spend(len(items))
        total: Fraction = _held(sum(items, Fraction()))
        return total

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _SpentError


_CANNOT_TELL = object()


def _told(value: Any) -> Any:
    if value is _CANNOT_TELL:
        raise _CannotTellError
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    return "number" if isinstance(value, int | Fraction) else type(value).__name__


def _is_number(value: Any) -> TypeGuard[int | Fraction]:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def _bounded(value: Any, most: int) -> Any:
    if len(value) > most:
        raise _CannotTellError
    return value


def _held(value: Any) -> Any:
    """Return a number within bounds: CEL's for an int, and as many digits as keep a calculation quick for one with decimals."""
    if isinstance(value, int):
        if not -LARGEST_NUMBER <= value < LARGEST_NUMBER:
            raise _CannotTellError
    elif abs(value.numerator) > MOST_DIGITS or value.denominator > MOST_DIGITS:
        raise _CannotTellError
    return value


def _calculated(how: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if not _is_number(a) or not _is_number(b):
        raise _CannotTellError
    return _held(how(a, b))


def _quotient(a: Any, b: Any) -> Any:
    if b == 0:
        raise _CannotTellError
    if isinstance(a, int) and isinstance(b, int):  # cut off towards zero, as CEL has it
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return Fraction(a) / Fraction(b)


def _remainder(a: Any, b: Any) -> Any:
    if not isinstance(a, int) or not isinstance(b, int) or b == 0:
        raise _CannotTellError
    return a - b * _quotient(a, b)


def _ordered(how: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        if _kind(a) != _kind(b) or isinstance(a, list):
            raise _CannotTellError
        return how(a, b)

    return compared


def _of_texts(how: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def told(a: Any, b: Any) -> bool:
        if not isinstance(a, str) or not isinstance(b, str):
            raise _CannotTellError
        return how(a, b)

    return told


def _negated(a: Any) -> bool:
    if not isinstance(a, bool):
        raise _CannotTellError
    return not a


def _size(a: Any) -> int:
    if not isinstance(a, str | list):
        raise _CannotTellError
    return len(a)


def _item(items: Any, at: Any) -> Any:
    if not isinstance(items, list) or not _is_number(at) or at != int(at) or not 0 <= at < len(items):
        raise _CannotTellError
    return items[int(at)]


def _whole(a: Any) -> int:
    if not _is_number(a):
        raise _CannotTellError
    whole: int = _held(int(a))
    return whole


def _decimal(a: Any) -> Fraction:
    if not _is_number(a):
        raise _CannotTellError
    return Fraction(a)


_LITERALS: Mapping[str, Callable[[str], Any]] = {
    "s": str,
    "b": lambda text: text == "1",
    "i": int,
    "d": lambda text: Fraction(int(text), values.MICRO),
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "_-_": lambda a, b: _calculated(operator.sub, a, b),
    "_*_": lambda a, b: _calculated(operator.mul, a, b),
    "_/_": lambda a, b: _calculated(_quotient, a, b),
    "_%_": lambda a, b: _calculated(_remainder, a, b),
    "-_": lambda a: _calculated(operator.sub, 0, a),
    "!_": _negated,
    "_<_": _ordered(operator.lt),
    "_<=_": _ordered(operator.le),
    "_>_": _ordered(operator.gt),
    "_>=_": _ordered(operator.ge),
    "_[_]": _item,
    "size": _size,
    "contains": _of_texts(lambda a, b: b in a),
    "startsWith": _of_texts(str.startswith),
    "endsWith": _of_texts(str.endswith),
    "int": _whole,
    "double": _decimal,
    "dyn": lambda a: a,
}
FUNCTIONS: Mapping[str, int] = {
    **dict.fromkeys(_FUNCTIONS, 2),
    **dict.fromkeys(("-_", "!_", "size", "int", "double", "dyn", "sum", "@not_strictly_false"), 1),
    **dict.fromkeys(("_+_", "_==_", "_!=_", "@in", "matches"), 2),
    **dict.fromkeys(("_&&_", "_||_"), 2),
    "_?_:_": 3,
}
"""Every function that a condition may call, as CEL names it → how many arguments it has."""
