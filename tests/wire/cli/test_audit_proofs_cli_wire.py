"""``interlock audit checkpoint``, ``prove``, ``bundle --service`` and ``acknowledge-truncation`` against a running service."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
import typer.testing
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.audit.merkle.examination import examine_bundle
from interlock.audit.wiring import open_service
from interlock.cli.audit import commands
from interlock.cli.oversight import commands as oversight
from interlock.domain.merkle.note import VerifierKey, checkpoint_in
from interlock.domain.merkle.tree import leaf_hash, verify_inclusion
from interlock.policy.wiring import open_service as open_policy
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import session_id
from tests.support.audit.auditors import Audited, audited, settings_of

pytestmark = pytest.mark.req("AUD-6")


@pytest.fixture(autouse=True)
def _only_the_command_prints() -> Iterator[None]:
    """The server of the same process writes no log lines between what the command prints."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@asynccontextmanager
async def serving(settings: Settings, *, windows: int = 4) -> AsyncIterator[Audited]:
    """Run audit and policy on one real port, and name it to the command line."""
    running = Audited(await open_service(settings))
    for _ in range(windows):
        await running.seal()
    if windows:
        await running.notary.round()
    open_ports = settings.model_copy(update={"allow_plaintext": True})
    server = RpcServer([running.service, await open_policy(settings)], open_ports, port=0)
    address = f"127.0.0.1:{await server.start()}"
    ours = {
        "INTERLOCK_AUDIT_ADDRESS": address, "INTERLOCK_POLICY_ADDRESS": address,
        "INTERLOCK_STATE_DIR": str(settings.state_dir),
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield running
    finally:
        _restore(before)
        await server.drain()


def _restore(before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


async def run(group: str, *arguments: object) -> tuple[int, str]:
    """Run ``interlock audit …`` or ``oversight …`` beside the server and return its exit code and what it printed."""
    invoke, app = typer.testing.CliRunner().invoke, {"audit": commands, "oversight": oversight}[group].app
    done = await asyncio.to_thread(invoke, app, list(map(str, arguments)))
    return done.exit_code, done.output


async def test_the_checkpoint_is_printed_as_it_was_signed(tmp_path):
    """Byte for byte, once the auditor's key opened it."""
    async with serving(settings_of(tmp_path)) as running:
        key = tmp_path / "state" / "checkpoint.key.pub"
        code, said = await run("audit", "checkpoint", "--public-key", key)
        as_json = json.loads((await run("audit", "checkpoint", "-o", "json"))[1])

        assert (code, said) == (0, as_json["note"])
        assert as_json["verifier_key"] == key.read_text().strip()
        assert (as_json["size"], as_json["log_size"]) == (12, 12)
        assert running.notary.unanchored == 0


async def test_an_event_is_proved_before_it_is_printed(tmp_path):
    """By session and sequence, and by position; what is printed verifies."""
    async with serving(settings_of(tmp_path)):
        key = tmp_path / "state" / "checkpoint.key.pub"
        named = ("--session", session_id(), "--sequence", 5)
        code, said = await run("audit", "prove", *named, "--public-key", key, "-o", "json")
        proof = json.loads(said)
        text = await run("audit", "prove", "--position", 4)

    root = checkpoint_in(proof["checkpoint"]).root
    path = [bytes.fromhex(one) for one in proof["hashes"]]
    assert code == 0
    assert verify_inclusion(leaf_hash(proof["entry"].encode()), proof["position"], proof["size"], path, root)
    assert text[0] == 0
    assert text[1].startswith(f"PROVED  entry 4 of 12: DPE_COMPLETED {session_id()} #5\n")


async def test_a_service_with_another_key_proves_nothing(tmp_path):
    """The auditor's key did not sign that checkpoint: exit 2."""
    other = VerifierKey("interlock.local/audit", Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    (tmp_path / "other.pub").write_text(f"{other}\n")
    async with serving(settings_of(tmp_path)):
        for command in (["checkpoint"], ["prove", "--position", 0]):
            code, said = await run("audit", *command, "--public-key", tmp_path / "other.pub")
            assert (code, "CHECKPOINT_INVALID" in said) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--position", 1, "--session", session_id()], ["--session", "x", "--sequence", 1], ["--position", 99]],
)
async def test_an_entry_is_named_in_one_way(tmp_path, arguments):
    """Neither by nothing nor by both, and it must be there."""
    async with serving(settings_of(tmp_path), windows=1):
        assert (await run("audit", "prove", *arguments))[0] == 2


async def test_a_bundle_is_streamed_from_the_service(tmp_path):
    """Without the database at hand; run again it goes on."""
    async with serving(settings_of(tmp_path)) as running:
        code, said = await run("audit", "bundle", "--service", "--out", tmp_path / "bundle")
        assert (code, said) == (0, f"{tmp_path / 'bundle'}: 12 entries\n")
        await running.seal()
        await running.notary.round()
        assert (await run("audit", "bundle", "--service", "--out", tmp_path / "bundle", "-o", "json"))[0] == 0
        found = examine_bundle(tmp_path / "bundle", running.notary.key.verifier(), tmp_path / "anchor")

    assert (found.verdict, found.size, found.anchored) == ("VALID", 15, 15)


async def test_a_loss_is_acknowledged_with_a_reviewers_approval_of_exactly_that_loss(tmp_path):
    """Key, approval and acknowledgement by the command line; another size, and the same approval again, are refused."""
    reviewers = tmp_path / "reviewers.yaml"
    code, said = await run("oversight", "keygen", "r@example.com", "--out", tmp_path / "r.key")
    assert code == 0
    reviewers.write_text(said.rstrip("\n") + "\n    actions: [acknowledge-truncation]\n")
    settings = settings_of(tmp_path, reviewers_file=reviewers)
    await _lose_the_end(settings)

    async with serving(settings, windows=0) as running:
        assert (await running.seal(session=3)).refusal.reason == "CHAIN_TRUNCATED"
        wrong = (await run("oversight", "approve-truncation", 5, "--key", tmp_path / "r.key"))[1].strip()
        right = (await run("oversight", "approve-truncation", 6, "--key", tmp_path / "r.key"))[1].strip()
        answers = [
            await run("audit", "acknowledge-truncation", "--size", size, "--approval", token)
            for size, token in ((6, wrong), (5, wrong), (6, "approved:sha256:x.y"), (6, right), (6, right))
        ]
        assert [code for code, _ in answers] == [2, 2, 2, 0, 2], answers
        assert "APPROVAL_MISMATCH" in answers[0][1]
        assert "OTHER_LOSS" in answers[1][1]
        assert "NOTHING_MISSING" in answers[4][1]
        assert not (await running.seal(session=3)).HasField("refusal")


async def _lose_the_end(settings: Settings) -> None:
    database = settings.state_dir / "audit.db"
    backup = settings.state_dir / "backup.db"
    async with audited(settings) as running:
        await running.seal()
    shutil.copy(database, backup)
    async with audited(settings) as running:
        await running.seal(session=2)
    for file in sorted(Path(settings.state_dir).glob("audit.db*")):
        file.unlink()
    shutil.copy(backup, database)


async def test_where_nothing_answers_the_command_says_where_it_asked(tmp_path):
    """Exit 2 and a hint."""
    before = os.environ.get("INTERLOCK_AUDIT_ADDRESS")
    os.environ["INTERLOCK_AUDIT_ADDRESS"] = "127.0.0.1:1"
    try:
        code, said = await run("audit", "checkpoint")
    finally:
        _restore({"INTERLOCK_AUDIT_ADDRESS": before})
    assert (code, "127.0.0.1:1" in said) == (2, True)
