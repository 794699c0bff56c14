"""kill -9 at random moments, and several processes on one file: what was acknowledged is there, and the chain verifies.

kill -9 shows that nothing is acknowledged before its commit. What a commit survives beyond that, a power loss, rests on
synchronous FULL, which ``test_audit_store.py`` holds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.audit.audit_children import Child, check

LIVES = 5


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
