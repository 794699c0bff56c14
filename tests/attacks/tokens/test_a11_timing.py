"""A-11: secrets told by the time that a comparison takes.

A measurement would fail on a busy machine and pass on a quiet one with a defect: it is the code that is held. What a secret or
a MAC is compared by is ``hmac.compare_digest`` or the lookup of a hash, and nothing else.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import interlock
from interlock.runtime.keys.api_keys import load_api_keys

pytestmark = pytest.mark.req("TOK-1")

HERE = Path(interlock.__file__).parent
SECRET = re.compile(r"(?:^|_)(?:mac|hmac|signature|password|secret|master|api_key|bearer|csrf|cookie)$")
CALLS = re.compile(r"(?:mac_of|event_hmac|window_hmac|digest|hexdigest)$")

PUBLIC = {"hmac", "pointed_hmac"}
"""The link of a chain: it is in every answer, and who knows it can do nothing with it. Compared in these files alone."""
PUBLIC_IN = (
    "domain/chain/chain.py", "domain/dag/dag.py", "domain/chain/provenance.py", "domain/session", "session/", "audit/", "cli/",
    "sidecar/",
)  # fmt: skip
OURS = {("cli/conformance/mesh_vectors.py", "mac")}
"""What a test of one's own deployment computes itself and compares with itself."""


def name_of(node: ast.AST) -> str:
    """The last name of an expression: of an attribute, a call, a subscript by a text."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return f"{name_of(function)}()"
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key
    return ""


def is_secret(node: ast.AST) -> bool:
    name = name_of(node)
    return bool(CALLS.search(name[:-2])) if name.endswith("()") else bool(SECRET.search(name))


def comparisons(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each ``==``, ``!=``, ``in`` or ``startswith`` on what is a secret by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            constant = any(isinstance(side, ast.Constant) for side in sides)
            if constant or not any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops):
                continue
            yield from ((node.lineno, name_of(side)) for side in sides if is_secret(side))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"startswith", "endswith"} and is_secret(node.func.value):
                yield node.lineno, name_of(node.func.value)


def ours() -> Iterator[tuple[str, str]]:
    for path in HERE.rglob("*.py"):
        name = path.relative_to(HERE).as_posix()
        if not name.startswith(("api/", "demo/")):
            yield name, path.read_text(encoding="utf-8")


def test_a11_no_secret_is_compared_by_its_bytes():
    """No MAC, signature, password or key stands on either side of ``==``, in code that is not the chain's own bookkeeping."""
    found = [
        f"{path}:{line} {name}"
        for path, text in ours()
        for line, name in comparisons(ast.parse(text))
        if not (name in PUBLIC and path.startswith(PUBLIC_IN)) and (path, name) not in OURS and not _of_contents(name)
    ]

    assert found == []


def _of_contents(name: str) -> bool:
    """A plain SHA-256 of a file or a text is no secret: everybody can compute it."""
    return name in {"hexdigest()", "digest()"}


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        ("mac == given", True), ("given != token.signature", True), ("mac_of(a, b, c) == d", True),
        ("presented in self.api_key", True), ("cookie.startswith(x)", True), ("hmac.compare_digest(mac, given)", False),
        ("mac == ''", False), ("names.get(digest)", False),
    ],
)  # fmt: skip
def test_a11_the_rule_finds_what_it_is_for(code, caught):
    """The rule above catches the comparisons it is for, and leaves the constant-time ones alone."""
    assert bool(list(comparisons(ast.parse(code)))) is caught


@pytest.mark.parametrize("module", ["domain/session/token.py", "domain/session/grant.py", "domain/chain/chain.py"])
def test_a11_every_mac_is_compared_in_constant_time(module):
    """Each module that computes a MAC to check one uses ``hmac.compare_digest`` on it."""
    calls = [
        ast.unparse(node)
        for node in ast.walk(ast.parse((HERE / module).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "hmac.compare_digest"
    ]

    assert calls


def test_a11_api_keys_are_found_by_their_hash(tmp_path):
    """What is looked up is the hash of all of the key: a prefix of the right key is as far away as any other text."""
    key = "sk-0123456789abcdef"
    path = tmp_path / "keys.yaml"
    path.write_text(f"team: {hashlib.sha256(key.encode()).hexdigest()}\n")
    keys = load_api_keys(path)

    assert list(keys._listed.now()) == [hashlib.sha256(key.encode()).hexdigest()]
    assert key not in path.read_text()
    assert keys.caller([f"Bearer {key}"]).scope == "team"
