"""A-29: an auditor gets proofs and signatures, never a key with which the log could be forged (SPEC-011 §6)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.store.contents import WRAP
from interlock.runtime.keys.derivation import HMAC, SIGN, load_keyring
from tests.support.audit.audit import session_id
from tests.support.audit.auditors import Evidence, audited, build_evidence

pytestmark = pytest.mark.req("AUD-6")

CANARY = "c0ffee" * 8 + "0123456789abcdef"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    """A bundle and an anchor of a log that was sealed under a master key that would be recognised."""
    before = os.environ.get("INTERLOCK_MASTER_KEY")
    os.environ["INTERLOCK_MASTER_KEY"] = CANARY
    try:
        yield build_evidence(tmp_path_factory.mktemp("log"), windows=9)
    finally:
        os.environ.pop("INTERLOCK_MASTER_KEY") if before is None else os.environ.update(INTERLOCK_MASTER_KEY=before)


def secrets(evidence: Evidence) -> list[bytes]:
    """Return every secret key that the log was made with, in the forms in which it could leak."""
    keyring = load_keyring(evidence.settings)
    raw = [load_checkpoint_key(evidence.settings).private.private_bytes_raw(), bytes.fromhex(CANARY)]
    for number in (1, 2, 3):
        for info in (HMAC, SIGN, WRAP):
            derived = keyring.derive(1, session_id(number), info)
            assert derived is not None
            raw.append(derived)
    forms: list[bytes] = []
    for key in raw:
        forms += [
            key,
            key.hex().encode(),
            base64.b64encode(key).rstrip(b"="),
            base64.urlsafe_b64encode(key).rstrip(b"="),
        ]
    return forms


def files(folder: Path) -> Iterator[Path]:
    """Return every file below a folder."""
    return (path for path in folder.rglob("*") if path.is_file())


def test_a29_nothing_exported_or_published_holds_a_key(evidence):
    """Master key, HMAC and signing keys of each session, key of the checkpoints: in no file, in no form."""
    found = {*files(evidence.bundle), *files(evidence.anchor)}
    assert len(found) > 5
    for path in found:
        content = path.read_bytes()
        assert not [secret for secret in secrets(evidence) if secret in content], path


async def test_a29_no_answer_of_the_log_holds_a_key(evidence):
    """Checkpoint, proofs and entries over the wire carry none either."""
    async with audited(evidence.settings) as audit:
        answers = [
            await audit.stub.GetCheckpoint(audit_pb2.GetCheckpointRequest()),
            await audit.stub.ProveInclusion(audit_pb2.ProveInclusionRequest(position=3)),
            await audit.stub.ProveConsistency(audit_pb2.ProveConsistencyRequest(old_size=5)),
            *[entry async for entry in audit.stub.ListEntries(audit_pb2.ListEntriesRequest())],
        ]
    for answer in answers:
        sent = answer.SerializeToString()
        assert not [secret for secret in secrets(evidence) if secret in sent]


def test_a29_the_bundle_is_verified_with_the_public_key_alone(evidence, tmp_path):
    """A process without the operator's folder, master key or database finds the log whole, and an edit in it."""
    key = tmp_path / "log.pub"
    key.write_text(f"{evidence.key}\n")
    copy = evidence.copy(tmp_path)
    assert offline(copy, key, tmp_path)["verdict"] == "VALID"

    lines = copy.lines
    copy.rewrite([*lines[:4], lines[4].replace(b'"severity":2', b'"severity":1'), *lines[5:]])
    found = offline(copy, key, tmp_path)
    assert (found["verdict"], found["findings"][0]["index"]) == ("BROKEN", 4)


def offline(evidence: Evidence, key: Path, nowhere: Path) -> dict[str, object]:
    """Run the verifier as a stranger would, in an empty folder."""
    command = [
        sys.executable, "-m", "interlock.cli.main", "audit", "verify", "--offline", str(evidence.bundle), "--anchor",
        str(evidence.anchor), "--public-key", str(key), "-o", "json",
    ]  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    done = subprocess.run(command, env=kept, cwd=nowhere, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    assert not (nowhere / ".interlock").exists(), "it made a folder of its own"
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a29_a_public_key_signs_nothing(evidence):
    """What an auditor holds makes no checkpoint that another auditor would believe."""
    private = load_checkpoint_key(evidence.settings).private
    assert evidence.key.public_key == private.public_key().public_bytes_raw()
    assert evidence.key.public_key != private.private_bytes_raw()
    assert str(evidence.key).count("+") >= 2


def test_a29_the_private_key_is_readable_by_its_owner_alone(evidence):
    """The file that was made has mode 0600, and one that others can read is refused."""
    path = evidence.settings.state_dir / "checkpoint.key"
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o640)
    try:
        with pytest.raises(Exception, match="CHECKPOINT_KEY_UNREADABLE"):
            load_checkpoint_key(evidence.settings)
    finally:
        path.chmod(0o600)


def test_a29_a_bundle_from_the_service_needs_no_key_of_the_operator(evidence, tmp_path):
    """Streamed from the service instead of the database, it verifies the same."""
    from interlock.audit.merkle.bundles import export
    from interlock.audit.merkle.examination import examine_bundle
    from interlock.cli.audit.proofs import ServiceSource

    async def work() -> None:
        async with audited(evidence.settings) as audit:
            await export(ServiceSource(audit.stub, 5.0), tmp_path / "streamed", reports=False)

    asyncio.run(work())
    found = examine_bundle(tmp_path / "streamed", evidence.key, evidence.anchor)
    assert (found.verdict, found.size) == ("VALID", len(evidence.lines))
