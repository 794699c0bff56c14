"""kill -9 at random moments, and several processes on one file: what was acknowledged is there, and the chain verifies.

kill -9 shows that nothing is acknowledged before its commit. What a commit survives beyond that, a power loss, rests on
synchronous FULL, which ``test_audit_store.py`` holds.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.audit.log_sql import SqliteReader
from interlock.audit.verify import examine
from interlock.domain.chain import Integrity
from tests.support.audit import KEYRING, session_id

ROOT = Path(__file__).resolve().parents[2]
LIVES = 5


class Child:
    """A process with the real audit service; it does not outlive its ``with``."""

    def __init__(self, database: Path, *arguments: object) -> None:
        command = [sys.executable, "-m", "tests.support.audit_child", str(database), *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'services'}:{ROOT}"}
        self._errors = database.with_name(f"child-{os.urandom(4).hex()}.log").open("w+b")
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self.said: list[list[str]] = []

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def hear(self, lines: int) -> None:
        """Wait until the child has said *lines* more."""
        assert self._process.stdout is not None
        for _ in range(lines):
            line = self._process.stdout.readline()
            assert line, self._why()
            self.said.append(line.decode().split())

    def go(self) -> None:
        """Let a child that waits for it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """kill -9, then hear what it had said before that; a line cut short was not said."""
        self._process.kill()
        out, _ = self._process.communicate()
        self.said += [line.decode().split() for line in out.splitlines(keepends=True) if line.endswith(b"\n")]

    def end(self) -> None:
        """Hear all until it ends by itself, which it must do well."""
        out, _ = self._process.communicate(timeout=60)
        self.said += [line.decode().split() for line in out.splitlines()]
        assert self._process.returncode == 0, self._why()

    @property
    def acknowledged(self) -> list[list[str]]:
        return [words for words in self.said if words[0] in {"E", "W"}]

    def _why(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode()[-2000:]


def check(database: Path, acknowledged: list[list[str]]) -> None:
    """Assert that everything acknowledged is there as acknowledged, and that every chain verifies."""
    with contextlib.closing(SqliteReader(database)) as reader:
        chains = {session: reader.chain(session_id(session)) for session in {int(words[1]) for words in acknowledged}}
    kept = set()
    for session, chain in chains.items():
        found = examine(chain, session_id(session), KEYRING)
        assert found.integrity in {Integrity.VALID, Integrity.UNVERIFIED}, found.faults[:3]
        kept |= {("E", session, e.sequence, e.data_json) for e in chain.events}
        kept |= {("W", session, w.window_number, w.hmac) for w in chain.windows}
    for kind, session, position, value in acknowledged:
        record = (kind, int(session), int(position), f'{{"n":"{value}"}}' if kind == "E" else value)
        assert record in kept, f"acknowledged and lost: {record}"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    """Where the children write."""
    yield tmp_path / "audit.db"


@pytest.mark.req("AUD-3", "PRV-2")
def test_what_was_acknowledged_survives_kill_9(database):
    """Five lives on one file, each ended at another moment; each next one goes on with the same chains (I4, I5)."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    acknowledged: list[list[str]] = []
    for _ in range(LIVES):
        with Child(database, "run") as child:
            child.hear(chance.randint(20, 150))
            child.kill()
        acknowledged += child.acknowledged
        check(database, acknowledged)
    assert {words[0] for words in acknowledged} == {"E", "W"}


@pytest.mark.req("AUD-3", "PRV-2")
def test_two_processes_on_one_file_make_one_gapless_chain(database):
    """Both write to one session as fast as they can; each reads the head inside its own transaction."""
    count = 150
    with Child(database, "shared", count) as one, Child(database, "shared", count) as other:
        for child in (one, other):
            child.hear(1)
        for child in (one, other):
            child.go()
        one.end()
        other.end()

    acknowledged = one.acknowledged + other.acknowledged
    check(database, acknowledged)
    assert sorted(int(words[2]) for words in acknowledged) == list(range(1, 2 * count + 3))


@pytest.mark.req("AUD-3", "SVC-9")
def test_a_process_goes_on_when_another_on_its_file_is_killed(database):
    """A killed writer leaves no lock behind and no half of a transaction."""
    with Child(database, "shared", 100) as survivor, Child(database, "shared", 500) as victim:
        survivor.hear(1)
        victim.hear(1)
        victim.go()
        victim.hear(10)
        survivor.go()
        victim.kill()
        survivor.end()

    check(database, survivor.acknowledged + victim.acknowledged)
    assert len(survivor.acknowledged) == 101


@pytest.mark.req("AUD-3", "SVC-9")
def test_writing_fails_closed_while_no_file_may_grow_and_comes_back_by_itself(database):
    """Twenty requests at once are all refused, none is half kept, and the next after the limit is served."""
    with Child(database, "limit") as child:
        child.end()

    assert [words for words in child.said if words[0] not in {"E", "W"}] == [
        ["REFUSED", "AUDIT_STORE_UNAVAILABLE"],
        ["MISSING", "audit_store"],
        ["MISSING"],
    ]
    assert [words[2:] for words in child.acknowledged] == [["1", "first"], ["2", "after"]]
    check(database, child.acknowledged)
