"""Installed code is held against the record of what was shipped (DPE-17)."""

from __future__ import annotations

import hashlib
import marshal
import py_compile
import sys
from base64 import urlsafe_b64encode
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from interlock.domain.errors import Refused
from interlock.runtime.integrity import require, verify, verify_distribution

pytestmark = pytest.mark.req("DPE-17")

NAME = "a_shipped_package"
FILES = {
    "__init__.py": b"ANSWER = 42\n",
    "rules.lua": b"return 1\n",
    "sql/0001.sql": b"SELECT 1;\n",
    "model.onnx": b"\0" * 64,
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A site folder with one installed package and its RECORD."""
    lines = []
    for name, content in FILES.items():
        path = tmp_path / NAME / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{NAME}/{name},sha256={digest},{len(content)}")
    info = tmp_path / f"{NAME}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n")
    (info / "RECORD").write_text("\n".join([*lines, f"{NAME}-1.0.dist-info/RECORD,,"]) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / NAME


def refusal() -> Refused:
    with pytest.raises(Refused) as raised:
        verify_distribution(NAME, NAME)
    return raised.value


def test_what_was_shipped_is_accepted_and_has_one_hash(home):
    """Every file as recorded: their number and a hash over all of them, the same each time."""
    found = verify_distribution(NAME, NAME)

    assert (found.ok, found.files) == (True, len(FILES))
    assert found == verify_distribution(NAME, NAME)
    assert found.hash.startswith("sha256:")


@pytest.mark.parametrize("name", list(FILES))
def test_one_changed_byte_is_named(home, name):
    """Whatever kind of file it is."""
    content = bytearray(FILES[name])
    content[len(content) // 2] ^= 1
    (home / name).write_bytes(content)

    assert (refusal().reason, f"{NAME}/{name}" in refusal().message) == ("CODE_CHANGED", True)


@pytest.mark.parametrize("name", list(FILES))
def test_a_missing_file_is_named(home, name):
    """A file that is gone is a change."""
    (home / name).unlink()

    assert (refusal().reason, name in refusal().message) == ("CODE_CHANGED", True)


@pytest.mark.parametrize("name", ["extra.py", "sql/0002.sql", "extra.pyc", "data/.hidden"])
def test_a_file_that_was_not_shipped_is_named(home, name):
    """A module or a migration beside ours would be loaded like ours."""
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).write_bytes(b"x")

    assert (refusal().reason, name in refusal().message) == ("CODE_CHANGED", True)


def compiled(home: Path) -> Path:
    path = Path(cache_from_source(str(home / "__init__.py")))
    py_compile.compile(str(home / "__init__.py"), cfile=str(path), doraise=True)
    return path


def test_what_python_compiled_is_accepted(home):
    """A cache of our own source is no change."""
    assert compiled(home).is_file()
    assert verify_distribution(NAME, NAME).ok


def test_compiled_code_that_is_not_that_of_its_source_is_named(home):
    """Python runs the cache and not the source that was verified: it is held against the source."""
    path = compiled(home)
    other = compile("ANSWER = 43\n", str(home / "__init__.py"), "exec")
    path.write_bytes(path.read_bytes()[:16] + marshal.dumps(other))

    assert (refusal().reason, "not compiled from its source" in refusal().message) == ("CODE_CHANGED", True)


def test_a_source_checkout_says_so(tmp_path, monkeypatch):
    """A distribution that recorded no hashes of ours cannot be compared, and that is no silent yes."""
    info = tmp_path / f"{NAME}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n")
    (info / "RECORD").write_text("somewhere.pth,sha256=abc,1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = verify_distribution(NAME, NAME)

    assert not found.ok
    assert "source" in found.why
    assert "not installed" in verify_distribution("no-such-distribution-of-ours", "x").why


def test_a_start_that_demands_verified_code_is_refused_without():
    """With the setting, code that cannot be compared does not run."""
    if verify().ok:
        assert require(verified=True).ok
    else:
        with pytest.raises(Refused, match="CODE_UNVERIFIED"):
            require(verified=True)
    assert require(verified=False).files >= 0
    assert sys.modules["interlock"]
