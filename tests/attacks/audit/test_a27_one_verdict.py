"""A-27: what each verifier finds of each attack, where, and what none of them can find; docs/audit.md has the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.audit.tampering import ATTACKS, NOT_FOUND, VERIFIERS, Log, findings, postgres_log, sqlite_log
from tests.support.paths import ROOT

pytestmark = [pytest.mark.req("AUD-6"), pytest.mark.long]

HEADING = "## Who finds what"
CANNOT_BE_FOUND = {"tail cut, checkpoint hidden", "state folder set back"}
"""Without an anchor: what is left is a whole and signed log that ends earlier."""
NOTHING_IS_LOST = {"checkpoint hidden"}
NOT_IN_THE_LOG = {"event inserted", "event inserted with its leaf", "event duplicated"}
"""What was only added is signed by nobody: an auditor's bundle does not have it, or has it after the signed end."""

Table = dict[tuple[str, bool], dict[str, str]]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        return sqlite_log(folder)
    return postgres_log(folder, request.getfixturevalue("postgres"))


@pytest.fixture(scope="module")
def table() -> Table:
    """The table of the documentation."""
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    return {
        (attack, anchor == "yes"): dict(zip(VERIFIERS, (cell.strip("`") for cell in cells), strict=True))
        for attack, anchor, *cells in rows[2:]
    }


def test_a27_the_table_has_every_attack(table):
    """With an anchor and without one."""
    assert set(table) == {(attack, anchored) for attack in ATTACKS for anchored in (True, False)}


@pytest.mark.parametrize("anchored", [True, False], ids=["anchor", "no anchor"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a27_every_verifier_finds_what_the_table_says(log, table, tmp_path, attack, anchored):
    """On SQLite and on PostgreSQL, with the master key and without it: the first finding, and its position."""
    settings, run = log.copy(tmp_path, ATTACKS[attack] is None)
    if (act := ATTACKS[attack]) is not None:
        act(run)

    assert findings(settings, tmp_path, anchored=anchored) == table[attack, anchored]


def test_a27_verifiers_with_the_same_bytes_and_keys_agree(table):
    """`verify` and `fsck` find something of the same attacks; without the master key, `fsck` and the auditor do."""
    for (attack, _), cells in table.items():
        found = {name: cell != NOT_FOUND for name, cell in cells.items()}
        assert found["verify"] == found["fsck"], attack
        if attack not in NOT_IN_THE_LOG:
            assert found["fsck"] == found["fsck, no master key"] == found["offline"], attack


def test_a27_what_cannot_be_found_is_only_what_the_front_page_says(table):
    """With an anchor everything that loses or changes a record is found; without one, a log that ends earlier is not."""
    silent = {attack for (attack, anchored), cells in table.items() if set(cells.values()) == {NOT_FOUND} and anchored}
    unanchored = {
        attack for (attack, anchored), cells in table.items() if set(cells.values()) == {NOT_FOUND} and not anchored
    }
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())

    assert silent == NOTHING_IS_LOST
    assert unanchored == NOTHING_IS_LOST | CANNOT_BE_FOUND
    assert "a state folder that is set back as a whole" in readme


def test_a27_an_untouched_log_is_accused_by_nobody(log, tmp_path):
    """The same log without an attack, with and without its anchor."""
    settings, _ = log.copy(Path(tmp_path), False)
    for anchored in (True, False):
        folder = tmp_path / str(anchored)
        folder.mkdir()
        assert set(findings(settings, folder, anchored=anchored).values()) == {NOT_FOUND}
