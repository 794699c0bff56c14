"""Find every reason that a refusal can have, with its kind and text, by reading the source (for gen_docs.py)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

KINDS = {
    "invalid": "INVALID", "unauthenticated": "UNAUTHENTICATED", "forbidden": "FORBIDDEN", "not_found": "NOT_FOUND",
    "conflict": "CONFLICT", "halted": "HALTED", "exhausted": "EXHAUSTED", "unavailable": "UNAVAILABLE",
}  # fmt: skip
REASON = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
SERVICES = ("SESSION", "POLICY", "DPE", "AUDIT")
Call = ast.Call
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Maker:
    """Something that makes a refusal: where its reason and message are among the arguments, and the kind it gives."""

    reason: int
    message: int | None
    kind: str


@dataclass
class Found:
    """One reason."""

    kinds: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)


# The refusal itself, and two values that become one: a flaw of a policy's text, the outcome of a decision.
ROOTS = {name: Maker(0, 1, kind) for name, kind in KINDS.items()} | {
    "Refused": Maker(1, 2, ""),
    "Flaw": Maker(0, 1, "INVALID"),
    "Outcome": Maker(2, None, "HALTED"),
}


def find(package: Path) -> dict[str, Found]:
    """Return reason → what is known of it, over all modules of *package* but the generated ones."""
    modules = {
        str(path.relative_to(package)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] != "api"
    }
    constants = {name: value for module in modules.values() for name, value in _constants(module)}
    makers = _makers(modules)
    found: dict[str, Found] = {}
    for place, module in modules.items():
        for reason, kind, text, hint in _made(module, makers.get(place, {}) | ROOTS, constants):
            one = found.setdefault(reason, Found())
            one.kinds |= {kind} if kind else set()
            one.places.add(place.split("/")[0].removesuffix(".py"))
            for value, values in ((text, one.texts), (hint, one.hints)):
                if value and value not in values:
                    values.append(value)
    return dict(sorted(found.items()))


def _constants(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from ((target.id, node.value.value) for target in node.targets if isinstance(target, ast.Name))


def _makers(modules: Mapping[str, ast.Module]) -> dict[str, dict[str, Maker]]:
    """Return, by module, its own functions and classes that pass a reason on; followed until nothing new is found."""
    makers: dict[str, dict[str, Maker]] = {place: {} for place in modules}
    while True:
        public = {n: m for own in makers.values() for n, m in own.items() if not n.startswith("_")}
        before = sum(map(len, makers.values()))
        for place, module in modules.items():
            if place == "domain/errors.py":
                continue
            known = public | makers[place] | ROOTS
            for name, function in _functions(module):
                if name not in ROOTS and (maker := _passes_on(function, known)):
                    makers[place].setdefault(name, maker)
        if sum(map(len, makers.values())) == before:
            return {place: public | own for place, own in makers.items()}


def _functions(module: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield name and function; a refusal's subclass is known by its class name and made by its ``__init__``."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            refuses = any(isinstance(base, ast.Name) and base.id == "Refused" for base in node.bases)
            inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
            yield from ((node.name, init) for init in inits if refuses)
        elif isinstance(node, Function) and node.name != "__init__":
            yield node.name, node


def _passes_on(function: Function, known: Mapping[str, Maker]) -> Maker | None:
    names = [arg.arg for arg in function.args.args if arg.arg not in {"self", "cls"}]
    for call in (node for node in ast.walk(function) if isinstance(node, Call)):
        maker = known.get("Refused" if _is_super_init(call.func) else _name(call.func))
        if maker is None:
            continue
        reason, message = _argument(call, maker.reason, "reason"), _argument(call, maker.message, "message")
        if isinstance(reason, ast.Name) and reason.id in names:
            position = names.index(message.id) if isinstance(message, ast.Name) and message.id in names else None
            return Maker(names.index(reason.id), position, maker.kind or _kind(call))
    return None


def _made(
    module: ast.Module, makers: Mapping[str, Maker], constants: Mapping[str, str]
) -> Iterator[tuple[str, str, str, str]]:
    for node in ast.walk(module):
        if isinstance(node, ast.Tuple) and len(node.elts) == 3 and _name(node.elts[0]) in KINDS:
            kind, reason, text = node.elts  # a row of a table of refusals
            yield from ((r, KINDS[_name(kind)], _text(text), "") for r in _reasons(reason, constants))
        super_init = isinstance(node, Call) and _is_super_init(node.func)
        if not isinstance(node, Call) or (_name(node.func) not in makers and not super_init):
            continue
        maker = makers["Refused" if super_init else _name(node.func)]
        text, hint = _text(_argument(node, maker.message, "message")), _text(_argument(node, None, "hint"))
        for reason in _reasons(_argument(node, maker.reason, "reason"), constants):
            yield reason, maker.kind or _kind(node), text, hint


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_super_init(called: ast.expr) -> bool:
    """Tell whether ``super().__init__`` is called. Only what has that name is written out: it is asked of each call."""
    return _name(called) == "__init__" and ast.unparse(called) == "super().__init__"


def _kind(call: Call) -> str:
    """Return the kind that a call of ``Refused`` names."""
    first = call.args[0] if call.args else None
    return first.attr if isinstance(first, ast.Attribute) and _name(first.value) == "Kind" else ""


def _argument(call: Call, position: int | None, keyword: str) -> ast.expr | None:
    for one in call.keywords:
        if one.arg == keyword:
            return one.value
    return call.args[position] if position is not None and position < len(call.args) else None


def _reasons(node: ast.expr | None, constants: Mapping[str, str]) -> Iterator[str]:
    """Yield the constants that an expression can be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and REASON.fullmatch(node.value):
        yield node.value
    elif isinstance(node, ast.Name) and REASON.fullmatch(constants.get(node.id, "-")):
        yield constants[node.id]
    elif isinstance(node, ast.IfExp):
        yield from _reasons(node.body, constants)
        yield from _reasons(node.orelse, constants)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _reasons(value, constants)
    elif isinstance(node, ast.JoinedStr) and ast.unparse(node) == "f'{service.upper()}_UNAVAILABLE'":
        yield from (f"{service}_UNAVAILABLE" for service in SERVICES)


def _text(node: ast.expr | None) -> str:
    """Return a literal text; what is filled in at run time is shown as its name in angle brackets."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else _placeholder(part) for part in node.values)
    return ""


def _placeholder(part: ast.expr) -> str:
    names = re.findall(r"[A-Za-z_]+", ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else "")
    return f"<{names[-1].strip('_').lower()}>" if names else "…"
