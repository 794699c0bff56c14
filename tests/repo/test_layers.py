"""Promises about the rooms: no circle of imports, folders that can be read, one meaning per name.

The order of the rooms inside each house is held by `lint-imports`; the contracts are in pyproject.toml.
"""

from __future__ import annotations

import ast
import graphlib
import re
import sys
from collections import Counter, defaultdict

import pytest

from tests.support.paths import PACKAGE, ROOT, TESTS

sys.path.insert(0, str(ROOT / "scripts"))

from import_graph import Module, direct, modules

OURS = {
    name: module
    for name, module in modules(PACKAGE, root=PACKAGE.parent).items()
    if not name.startswith("interlock.api")
}
PACKAGES = {name: module for name, module in OURS.items() if module.is_package}

MOST_FILES_OF_A_FOLDER = 20
MOST_ROOMS = {"sidecar": 15, "dpe": 20, "audit": 18, "runtime": 15, "domain": 20}
MOST_CASTS = 4
MOST_SHARED_NAMES = 10
SHARED_NAMES = {
    "Sealed": "a window after its seal: inside the audit transaction its HMAC, in the sidecar the settlement that follows",
    "Effect": "a change of a variable, by the name that the peer's code has; a change of a session by a settlement",
    "Lease": "a slice of a budget that an agent spends; the time in which a window may be sealed",
    "Settings": "an agent's address and key in the client, which may not import the runtime; the mesh's settings",
    "State": "what a kernel's variables hold, by the name that the peer's code has; what a client's session keeps",
}
"""Public classes of one name in two modules → why each place keeps it."""


def rooms(house: str) -> set[str]:
    """Return the packages and modules directly inside *house*; folders of data are none."""
    start = f"interlock.{house}."
    return {name.removeprefix(start).partition(".")[0] for name in OURS if name.startswith(start)}


def classes(module: Module) -> list[str]:
    """Return the public classes at the top of *module*."""
    return [
        node.name for node in ast.parse(module.source).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    ]


def test_no_module_imports_itself_through_others():
    """The graph of all modules has an order, imports for types and inside functions counted."""
    try:
        graphlib.TopologicalSorter(direct(OURS)).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize(
    "source",
    ["from interlock.b import x", "def later():\n    import interlock.b", "if TYPE_CHECKING:\n    from . import b"],
)
def test_a_circle_is_found_however_it_is_written(tmp_path, source):
    """The graph above sees imports at the top, inside functions, for types alone and relative ones."""
    (tmp_path / "interlock").mkdir()
    (tmp_path / "interlock" / "__init__.py").touch()
    (tmp_path / "interlock" / "a.py").write_text(source)
    (tmp_path / "interlock" / "b.py").write_text("from interlock.a import y")

    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(direct(modules(tmp_path, root=tmp_path))).prepare()


def test_no_folder_holds_more_than_twenty_files():
    """A folder that outgrew a glance wants rooms."""
    sizes = Counter(module.path.parent.relative_to(PACKAGE) for module in OURS.values())

    assert not {str(folder): count for folder, count in sizes.items() if count > MOST_FILES_OF_A_FOLDER}


@pytest.mark.parametrize("house", sorted(MOST_ROOMS))
def test_a_house_has_few_rooms(house):
    """Its first level fits on a screen."""
    assert 0 < len(rooms(house)) <= MOST_ROOMS[house], sorted(rooms(house))


def test_every_package_says_what_lives_there():
    """An empty ``__init__.py`` leaves a reader to guess."""
    assert not [name for name, module in PACKAGES.items() if not ast.get_docstring(ast.parse(module.source))]


def test_a_public_class_name_means_one_thing():
    """A name that two modules define is on the list with its reason, and the list is short and true."""
    where = defaultdict(list)
    for name, module in OURS.items():
        for found in classes(module):
            where[found].append(name)

    assert {found: places for found, places in where.items() if len(places) > 1}.keys() == SHARED_NAMES.keys()
    assert len(SHARED_NAMES) <= MOST_SHARED_NAMES
    assert all(SHARED_NAMES.values())


def test_few_casts_hide_a_type():
    """A cast to Any switches the type checker off; enum fields of a message have ``ValueType``."""
    found = [
        f"{name}:{number}"
        for name, module in OURS.items()
        for number, line in enumerate(module.source.splitlines(), 1)
        if re.search(r"""\bcast\(["']?Any\b""", line)
    ]

    assert len(found) <= MOST_CASTS, found


def test_unit_tests_stand_in_folders():
    """They mirror the houses, so that `make test AREA=name` finds them."""
    assert not sorted(path.name for path in (TESTS / "unit").glob("test_*.py"))
