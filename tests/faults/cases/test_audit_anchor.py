"""The second place of trust: gone, hanging, behind, or cut off from by kill -9 at each step (AUD-6, I6)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.merkle.examination import examine_log
from interlock.audit.merkle.folder import LogFolder
from interlock.audit.store.opening import open_reader
from interlock.domain.merkle.tree import merkle_root
from interlock.runtime import failpoints
from interlock.runtime.settings.model import Settings
from tests.support.audit.auditors import audited, settings_of
from tests.support.paths import ROOT

pytestmark = pytest.mark.req("AUD-6")


async def test_an_anchor_that_is_gone_is_tried_again_and_holds_nothing_up(tmp_path):
    """Writing goes on; when the folder is back, everything is published."""
    settings = settings_of(tmp_path)
    anchor = tmp_path / "anchor"
    anchor.rmdir()
    async with audited(settings) as audit:
        assert not (await audit.seal()).HasField("refusal")
        await audit.notary.round()
        assert audit.notary.unanchored == 3
        anchor.mkdir()
        await audit.notary.round()
        assert audit.notary.unanchored == 0
    assert LogFolder(anchor).sizes(1) == [3]


async def test_a_hanging_anchor_blocks_neither_the_log_nor_its_checkpoints(tmp_path):
    """Publishing stands still at a failpoint for longer than the test: windows are sealed and checkpoints signed."""
    settings = settings_of(tmp_path, checkpoint_s=0.05)
    failpoints.configure("audit.before_anchor:delay=1500")
    try:
        async with audited(settings) as audit:
            await audit.seal()
            async with asyncio.timeout(5):
                while audit.notary.stuck is False:
                    await asyncio.sleep(0.01)
            for number in range(2, 6):
                assert not (await audit.seal(session=number)).HasField("refusal")
            await audit.notary.round()
            with closing(open_reader(settings)) as log:
                assert log.checkpoint()[0] == 15
            assert audit.notary.unanchored == 15
            waiting = [thread for thread in threading.enumerate() if thread.name == "audit-anchor"]
            assert len(waiting) == 1, "what hangs costs one thread, however long"
    finally:
        failpoints.configure("")


async def test_a_database_that_comes_later_is_compared_at_its_first_write(tmp_path):
    """The service starts without it; what then appears there is older than what was published."""
    settings = settings_of(tmp_path)
    async with audited(settings) as audit:
        await audit.seal()
    state = tmp_path / "state"
    for file in state.glob("audit.db*"):
        file.unlink()
    (state / "audit.db").mkdir()  # so that nothing can be opened there
    async with audited(settings) as audit:
        assert (await audit.record()).refusal.reason.startswith("AUDIT_STORE_")
        (state / "audit.db").rmdir()
        async with asyncio.timeout(10):
            while (refused := (await audit.record()).refusal.reason) != "CHAIN_TRUNCATED":
                assert refused.startswith("AUDIT_STORE_") or not refused
                await asyncio.sleep(0.02)


async def test_with_a_required_anchor_nothing_is_sealed_beyond_the_lag(tmp_path):
    """Releases fail closed with AUDIT_ANCHOR_LAG while too much is unpublished, and go on by themselves."""
    settings = settings_of(tmp_path, audit_anchor_required=True, audit_anchor_max_lag=5)
    anchor = tmp_path / "anchor"
    async with audited(settings) as audit:
        await audit.seal()
        anchor.rename(tmp_path / "away")
        await audit.seal()
        refused = (await audit.seal()).refusal
        assert refused.reason == "AUDIT_ANCHOR_LAG"
        assert refused.retry_after_ms > 0
        assert "AUDIT_ANCHOR_LAG" in (await audit.service.unready_dependencies())["audit_anchor"]
        assert not (await audit.record()).HasField("refusal"), "what went on is still recorded"
        (tmp_path / "away").rename(anchor)
        await audit.notary.round()
        assert not (await audit.seal()).HasField("refusal")
        assert await audit.service.unready_dependencies() == {}


async def test_a_required_anchor_that_was_never_read_lets_nothing_be_sealed(tmp_path):
    """What the anchor has is not known: it may have more than the log."""
    settings = settings_of(tmp_path, audit_anchor_required=True)
    (tmp_path / "anchor").rmdir()
    async with audited(settings) as audit:
        assert (await audit.seal()).refusal.reason == "AUDIT_ANCHOR_LAG"


async def test_an_anchor_of_another_log_is_never_written_to(tmp_path):
    """Two logs with one anchor: the second says ANCHOR_FOREIGN and publishes nothing."""
    async with audited(settings_of(tmp_path)) as audit:
        await audit.seal()
    before = (tmp_path / "anchor" / "checkpoint").read_text()
    async with audited(settings_of(tmp_path, state_dir=tmp_path / "other")) as audit:
        for _ in range(3):
            assert not (await audit.seal()).HasField("refusal")
        await audit.notary.round()
        assert audit.notary.trouble.startswith("ANCHOR_FOREIGN")
    assert (tmp_path / "anchor" / "checkpoint").read_text() == before


@pytest.mark.parametrize(
    "point",
    [
        "audit.before_anchor",
        pytest.param("audit.before_checkpoint", marks=pytest.mark.long),
        pytest.param("audit.after_anchor", marks=pytest.mark.long),
    ],
)
def test_kill_9_at_each_step_breaks_nothing_and_loses_nothing_for_good(tmp_path, point):
    """Killed at the second checkpoint; the next life signs and publishes what is due, and everything extends (I6)."""
    settings = settings_of(tmp_path)
    assert child(settings, f"{point}:kill@2") == -signal.SIGKILL
    between = published(settings)
    assert child(settings, "") == 0

    after = published(settings)
    assert after.items() >= between.items(), "nothing that was published changed"
    with closing(open_reader(settings)) as log:
        size = log.log_size()
        leaves = log.leaf_hashes(0, size)
        found = examine_log(log, load_checkpoint_key(settings).verifier(), settings.audit_anchor)
    assert max(after) == size, "the end is published after all"
    assert (found.verdict, found.anchored) == ("VALID", size)
    assert all(f"\n{size}\n" in note for size, note in after.items())
    assert LogFolder(tmp_path / "anchor").latest(1) == after[size]
    assert merkle_root(leaves) == found.root


def published(settings: Settings) -> dict[int, str]:
    assert settings.audit_anchor is not None
    folder = LogFolder(settings.audit_anchor)
    return {size: folder.checkpoint(1, size) for size in folder.sizes(1)}


def child(settings: Settings, rules: str) -> int:
    """Run a process that seals and publishes three times, and return how it ended."""
    environment = {
        **os.environ, "INTERLOCK_FAILPOINTS": rules, "INTERLOCK_STATE_DIR": str(settings.state_dir),
        "INTERLOCK_AUDIT_ANCHOR": str(settings.audit_anchor), "PYTHONPATH": f"{ROOT / 'services'}:{ROOT}",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.audit.anchor_child"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr.decode()[-2000:]
    return done.returncode
