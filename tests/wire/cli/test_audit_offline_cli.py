"""``interlock audit`` for auditors: verdicts, exit codes, hostile folders, and the walk-through of docs/audit.md."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.testing

from interlock.cli.audit.commands import app
from interlock.domain.merkle.entry import decode_entry
from interlock.domain.merkle.tiles import LONGEST_LINE
from tests.support.audit.auditors import Evidence, build_evidence
from tests.support.paths import PACKAGE, ROOT

pytestmark = pytest.mark.req("AUD-6")

PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A bundle of a real service's log, and its anchor."""
    return build_evidence(tmp_path_factory.mktemp("log"), windows=12, per_checkpoint=4)


@pytest.fixture
def evidence(original: Evidence, tmp_path: Path) -> Iterator[Evidence]:
    """A copy to tamper with, and the operator's settings in the environment."""
    ours = {"INTERLOCK_STATE_DIR": str(original.settings.state_dir)}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    (tmp_path / "log.pub").write_text(f"{original.key}\n")
    yield original.copy(tmp_path)
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


def run(*arguments: object) -> tuple[int, str]:
    """Run ``interlock audit …`` and return its exit code and what it printed."""
    done = typer.testing.CliRunner().invoke(app, list(map(str, arguments)))
    return done.exit_code, done.output


def verify(evidence: Evidence, *more: object) -> tuple[int, str]:
    key = evidence.bundle.parent / "log.pub"
    return run("verify", "--offline", evidence.bundle, "--anchor", evidence.anchor, "--public-key", key, *more)


def test_a_whole_log_is_said_to_be_whole(evidence):
    """Exit 0, with the ranges that are signed, anchored and unanchored."""
    code, said = verify(evidence)

    assert code == 0
    assert said.startswith("VALID  interlock.local/audit\n")
    assert "signed      [0, 38)" in said
    assert "anchored    [0, 38)" in said
    assert "unanchored  [38, 38)" in said


def test_without_an_anchor_it_says_whose_word_that_is(evidence):
    """Nothing outside the log vouches for its end."""
    code, said = run("verify", "--offline", evidence.bundle, "--public-key", evidence.bundle.parent / "log.pub")

    assert code == 0
    assert "no anchor was given" in said


def test_an_edit_ends_with_1_and_is_named(evidence):
    """For people and for programs."""
    lines = evidence.lines
    evidence.rewrite([*lines[:3], lines[3].replace(b'"severity":2', b'"severity":1'), *lines[4:]])

    code, said = verify(evidence)
    assert code == 1
    assert "  entry 3: ENTRY_MISMATCH\n" in said
    code, said = verify(evidence, "-o", "json")
    found = json.loads(said)
    assert code == 1
    assert (found["verdict"], found["findings"]) == (
        "BROKEN",
        [{"what": "entry", "index": 3, "reason": "ENTRY_MISMATCH", "detail": ""}],
    )


def test_what_is_written_into_an_entry_cannot_fool_a_terminal(evidence):
    """Control characters of a tampered log are printed as escapes."""
    evidence.rewrite([*evidence.lines[:-1], b'{"\x1b[31m":"\xe2\x80\xae"}'])
    (evidence.bundle / "checkpoint").write_text("\x1b[31m\n")

    code, said = verify(evidence)
    assert code == 1
    assert "\x1b" not in said


def spoil(evidence: Evidence, how: str) -> None:
    """Make the bundle what no bundle is."""
    entries, manifest = evidence.bundle / "entries.ndjson", evidence.bundle / "bundle.json"
    match how:
        case "no manifest":
            manifest.unlink()
        case "another manifest":
            manifest.write_text('{"format":"other"}')
        case "deep manifest":
            manifest.write_text("[" * 60_000)
        case "huge manifest":
            manifest.write_bytes(b" " * 70_000)
        case "negative size":
            manifest.write_text('{"format":"interlock-audit-bundle/1","reports":false,"size":-1}')
        case "no entries":
            entries.unlink()
        case "entries behind a link":
            entries.rename(entries.with_name("elsewhere"))
            entries.symlink_to("elsewhere")
        case "entries in a pipe":
            entries.unlink()
            os.mkfifo(entries)
        case "entries in a folder":
            entries.unlink()
            entries.mkdir()
        case "an endless line":
            with entries.open("r+b") as file:
                file.truncate(1_000_000_000)  # sparse: zeros without a line break
        case "history behind a link":
            (evidence.bundle / "checkpoints").rename(evidence.bundle / "elsewhere")
            (evidence.bundle / "checkpoints").symlink_to("elsewhere")
        case "no bundle":
            manifest.parent.rename(manifest.parent.with_name("gone"))


@pytest.mark.parametrize(
    "how",
    [
        "no manifest", "another manifest", "deep manifest", "huge manifest", "negative size", "no entries",
        "entries behind a link", "entries in a pipe", "entries in a folder", "an endless line", "history behind a link",
        "no bundle",
    ],
)  # fmt: skip
def test_a_hostile_folder_is_refused_in_bounded_memory(evidence, how):
    """Exit 2 with BUNDLE_UNUSABLE: nothing is followed, nothing hangs, a line of 1 GB is not read."""
    spoil(evidence, how)
    tracemalloc.start()
    try:
        code, said = verify(evidence)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (code, "BUNDLE_UNUSABLE" in said) == (2, True), said
    assert peak < 8 * LONGEST_LINE


@pytest.mark.parametrize(
    "tail", [b"", b"\xff\xfe\n", b"\xed\xa0\x80\n", b"\n\n\n", b"[" * 100_000 + b"\n", b'{"leaf":"00"}\n', b"x" * 4_000_000 + b"\n"]
)  # fmt: skip
def test_hostile_lines_are_found_and_not_believed(evidence, tail):
    """A line cut short, wrong UTF-8, lone surrogates, empty lines, deep nesting, a false mark, a long line."""
    with (evidence.bundle / "entries.ndjson").open("r+b") as file:
        content = file.read()
        file.seek(0)
        file.truncate()
        file.write(content[:-20] + b"\n" + tail if tail else content[:-20])

    code, said = verify(evidence, "-o", "json")
    assert code == 1
    assert json.loads(said)["findings"][0]["index"] == 37


def test_tiles_and_checkpoints_that_are_no_such_files_are_found(evidence):
    """A link, a file of other length, a checkpoint of many bytes: named, and nothing of them is used."""
    tile = evidence.bundle / "tile" / "0" / "000.p" / "38"
    tile.write_bytes(tile.read_bytes()[:-1])
    (evidence.bundle / "checkpoints" / "12").write_bytes(b"x" * 20_000)
    (evidence.anchor / "checkpoint").unlink()
    (evidence.anchor / "checkpoint").symlink_to("/etc/passwd")

    code, said = verify(evidence, "-o", "json")
    reasons = {finding["reason"] for finding in json.loads(said)["findings"]}
    assert code == 1
    assert {"TILE_UNUSABLE", "CHECKPOINT_UNUSABLE"} <= reasons
    assert "root:" not in said


@pytest.mark.parametrize("text", ["", "x", "interlock.local/audit+00000000+AQ==", "\xff" * 10])
def test_a_file_that_is_no_public_key_is_refused(evidence, text):
    """Exit 2: nothing is verified with half a key, or with none."""
    key = evidence.bundle.parent / "log.pub"
    key.write_text(text, encoding="latin-1")
    assert verify(evidence)[0] == 2
    assert run("verify", "--offline", evidence.bundle)[0] == 2


def test_fsck_finds_the_database_whole(evidence):
    """The operator's own check, with the anchor."""
    code, said = run("fsck", "--anchor", evidence.anchor)

    assert code == 0
    assert said.startswith("VALID  interlock.local/audit\n  38 entries, 3 sessions, 12 sealed windows\n")


def test_an_export_that_broke_off_goes_on_where_it_ended(evidence):
    """Half a line at the end is cut off; the rest is written again, and the bundle verifies."""
    entries = evidence.bundle / "entries.ndjson"
    whole = entries.read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        entries.write_bytes(whole[:cut])
        assert run("bundle", "--out", evidence.bundle)[0] == 0
        assert entries.read_bytes() == whole
    assert verify(evidence)[0] == 0


def test_reports_are_exported_and_checked(evidence, tmp_path):
    """A report that was changed, and one that is gone without a mark."""
    assert run("bundle", "--out", tmp_path / "full", "--reports")[0] == 0
    full = Evidence(evidence.settings, tmp_path / "full", evidence.anchor, evidence.key)
    reports = sorted((tmp_path / "full" / "reports").iterdir())
    assert len(reports) == 12
    assert full.examine().verdict == "VALID"

    reports[0].write_bytes(reports[0].read_bytes() + b" ")
    reports[1].unlink()
    assert {finding.reason for finding in full.examine().findings} == {"REPORT_HASH_MISMATCH", "MISSING_REPORT"}


# --- docs/audit.md


def block(language: str) -> str:
    found = re.search(rf"^```{re.escape(language)}\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found, language
    return found[1]


def test_the_page_prints_an_entry_and_its_hash_as_they_are():
    """The byte-exact example is one."""
    entry = block("text entry").encode()

    assert decode_entry(entry).event_type == "SESSION_TERMINATED"
    assert hashlib.sha256(b"\x00" + entry).hexdigest() == block("text leaf")


def test_the_ten_lines_of_the_page_verify_a_proof_without_our_code(evidence, tmp_path):
    """They hold for every entry of the log, and for none whose proof was touched."""
    code = compile(block("python"), "docs/audit.md", "exec")
    lines, leaves, _ = evidence.parts()
    for proof in _proofs(lines, leaves):
        assert _run(code, tmp_path, proof) == "proved\n"
        assert _run(code, tmp_path, {**proof, "entry": proof["entry"] + " "}) == "NOT PROVED\n"
        assert _run(code, tmp_path, {**proof, "hashes": proof["hashes"][1:]}) == "NOT PROVED\n"


def _proofs(lines, leaves) -> Iterator[dict[str, object]]:
    from interlock.domain.merkle.tree import StoredTree, inclusion_proof, tree_root

    node = StoredTree(lambda level, start, end: leaves[start:end] if level == 0 else []).node
    for position in range(len(lines)):
        path = [one.hex() for one in inclusion_proof(position, len(lines), node)]
        yield {
            "position": position, "size": len(lines), "entry": lines[position][0].decode(), "hashes": path,
            "root": tree_root(len(lines), node).hex(),
        }  # fmt: skip


def _run(code, folder: Path, proof) -> str:
    (folder / "proof.json").write_text(json.dumps(proof))
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said):
        exec(code, {})
    return said.getvalue()


def test_every_reason_is_on_the_page():
    """What an examination can name, the page explains."""
    sources = [PACKAGE / "domain" / "merkle" / name for name in ("alignment.py", "bundle.py", "entries.py")]
    sources.append(PACKAGE / "audit" / "merkle" / "examination.py")
    named = set(re.findall(r'"([A-Z]{4,}(?:_[A-Z]+)+)"', "".join(path.read_text() for path in sources)))

    assert len(named) > 15
    assert not {reason for reason in named if f"`{reason}`" not in PAGE}
