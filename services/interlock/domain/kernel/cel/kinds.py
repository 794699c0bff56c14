"""Of which type a condition in CEL is, found before anything is evaluated.

Whole numbers and decimals are one type here, as they are in a kernel: ``active <= 10``, ``active + 1 <= 2.5`` and ``size(log) < limit`` are all
fine. What a list holds is known when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.domain.errors import Refused, invalid
from interlock.domain.kernel import values
from interlock.domain.kernel.cel.evaluation import Tree

N, S, B, L, ANY = values.NUMBER, values.TEXT, values.FLAG, values.LIST, ""

Kinds = Mapping[str, str]
"""Names → their types, letters of ``values``; a set is a list."""

_SIGNATURES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("_-_", "_*_", "_/_", "_%_"), (N + N, N)),
    **dict.fromkeys(("-_", "int", "double"), (N, N)),
    **dict.fromkeys(("_&&_", "_||_"), (B + B, B)),
    **dict.fromkeys(("!_", "@not_strictly_false"), (B, B)),
    **dict.fromkeys(("contains", "startsWith", "endsWith", "matches"), (S + S, B)),
    "_[_]": (L + N, ANY),
    "sum": (L, N),
}
"""Functions whose arguments have one type each → those, and the type of the result."""
_ALIKE: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), (N + S + B, B)),
    **dict.fromkeys(("_==_", "_!=_"), (N + S + B + L, B)),
    "_+_": (N + S + L, ANY),
}
"""Functions of two values of one type → which that can be, and the type of the result; ANY: the same."""
_WORDS = {N: "a number", S: "a text", B: "true or false", L: "a list", ANY: "anything"}


def require_condition(tree: Tree, names: Kinds) -> None:
    """Refuse what is no condition, with KERNEL_CEL_NOT_BOOLEAN, or whose types do not fit, with KERNEL_CEL_TYPES."""
    if (found := kind_of(tree, names)) != B:
        raise invalid("KERNEL_CEL_NOT_BOOLEAN", f"a condition is true or false, and this is {_WORDS[found]}")


def kind_of(tree: Tree, names: Kinds) -> str:
    """Return the type of a tree; ANY for what only its evaluation tells."""
    what = tree[0]
    if what == "name":
        found = names[tree[1]]
        return L if found == values.SET else found
    if what == "list":
        for one in tree[1]:
            kind_of(one, names)
        return L
    if what == "fold":
        return _folded(tree[1:], names)
    if what == "call":
        return _called(tree[1], [kind_of(one, names) for one in tree[2]])
    return N if what in {"i", "d"} else S if what == "s" else B


def _folded(parts: Sequence[Tree], names: Kinds) -> str:
    item, over, result, first, while_, next_, last = parts
    _require("a loop", kind_of(over, names), L)
    within = {**names, str(result): kind_of(first, names)}
    for one, wanted in ((while_, B), (next_, within[str(result)])):
        _require("a loop", kind_of(one, {**within, str(item): ANY}), wanted)
    return kind_of(last, within)


def _called(name: str, given: Sequence[str]) -> str:
    if name in _SIGNATURES:
        wanted, result = _SIGNATURES[name]
        for found, one in zip(given, wanted, strict=True):
            _require(name, found, one)
        return result
    if name in _ALIKE:
        wanted, result = _ALIKE[name]
        both = _both(name, *given)
        if both and both not in wanted:
            raise _wrong(name, both)
        return result or both
    if name == "_?_:_":
        _require(name, given[0], B)
        return _both(name, *given[1:])
    if name == "@in":
        _require(name, given[1], L)
        return B
    if name == "size":
        if given[0] not in {S, L, ANY}:
            raise _wrong(name, given[0])
        return N
    return ANY


def _both(name: str, a: str, b: str) -> str:
    if a and b:
        _require(name, b, a)
    return a or b


def _require(name: str, found: str, wanted: str) -> None:
    if found and wanted and found != wanted:
        raise invalid(
            "KERNEL_CEL_TYPES",
            "the types do not fit",
            why=f"{name} wants {_WORDS[wanted]}, and this is {_WORDS[found]}",
        )


def _wrong(name: str, found: str) -> Refused:
    return invalid("KERNEL_CEL_TYPES", "the types do not fit", why=f"{name} does not take {_WORDS[found]}")
