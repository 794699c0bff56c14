"""The file of master keys by version, and the commands that make and rotate it (TOK-4)."""

from __future__ import annotations

import hashlib
import json
import secrets
import stat
import threading

import pytest
from typer.testing import CliRunner

from interlock.cli.keys.commands import app
from interlock.domain.errors import Refused
from interlock.runtime.keys import keys_file
from interlock.runtime.keys.derivation import SIGN, fingerprint, load_keyring
from interlock.runtime.keys.masters import Masters
from interlock.runtime.settings.model import Settings
from tests.support.texts.canary import MASTER_KEY, found_in

pytestmark = pytest.mark.req("TOK-4")

ONE, TWO, THREE = (hashlib.sha256(name).digest() for name in (b"one", b"two", b"three"))
LONG_AGO, FAR_AWAY = 1_000_000_000_000_000, 4_000_000_000_000_000


def written(path, masters: Masters):
    keys_file.write(path, keys_file.as_yaml(masters))
    return path


def keyring(tmp_path, masters: Masters, *, now=lambda: 2_000_000_000_000_000, **settings):
    path = written(tmp_path / "keys.yaml", masters)
    return load_keyring(Settings(master_keys_file=path, state_dir=tmp_path / "state", **settings), clock=now)


def test_what_is_written_is_read(tmp_path):
    """Versions, times and minimum come back as they were."""
    masters = Masters({1: ONE, 3: THREE}, {3: LONG_AGO}, 3)

    assert keys_file.load(written(tmp_path / "keys.yaml", masters)) == masters


def test_the_highest_version_signs_once_its_time_has_come(tmp_path):
    """A version that waits verifies already, so that no process is surprised by it, and signs later."""
    time = [LONG_AGO]
    made = keyring(tmp_path, Masters({1: ONE, 2: TWO}, {2: LONG_AGO + 10}), now=lambda: time[0])
    before = made.current
    time[0] += 10

    assert (before, made.current) == (1, 2)
    assert made.derive(2, "s", SIGN)


def test_a_version_that_another_process_has_is_found_at_once(tmp_path):
    """A token of a version that came within the last second is verified: the file is looked at before it is refused."""
    path = written(tmp_path / "keys.yaml", Masters({1: ONE}))
    made = load_keyring(Settings(master_keys_file=path, state_dir=tmp_path / "state"))
    assert made.derive(2, "s", SIGN) is None
    written(path, Masters({1: ONE, 2: TWO}))

    assert made.derive(2, "s", SIGN) == load_keyring(Settings(master_keys_file=path, state_dir=tmp_path)).derive(
        2, "s", SIGN
    )


def test_the_single_key_of_before_is_version_1(tmp_path):
    """With both settings the old sessions go on; two different keys for version 1 are refused."""
    both = keyring(tmp_path, Masters({2: TWO}), master_key=MASTER_KEY)

    assert sorted(both.masters) == [1, 2]
    with pytest.raises(Refused, match="MASTER_KEYS_INVALID"):
        keyring(tmp_path, Masters({1: ONE, 2: TWO}), master_key=MASTER_KEY)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "MASTER_KEYS_INVALID"),
        ("[]", "MASTER_KEYS_INVALID"),
        ("keys: {}", "MASTER_KEYS_INVALID"),
        ("keys: {1: 12345678901234567890123456789012}", "MASTER_KEYS_INVALID"),
        ('keys: {"1": "' + ONE.hex() + '"}', "MASTER_KEYS_INVALID"),
        ('keys: {0: "' + ONE.hex() + '"}', "MASTER_KEYS_INVALID"),
        ('keys: {true: "' + ONE.hex() + '"}', "MASTER_KEYS_INVALID"),
        ('keys: {1: "' + "00" * 32 + '"}', "MASTER_KEY_WEAK"),
        ('keys: {1: "' + "0123456789abcdef" * 4 + '"}', "MASTER_KEY_WEAK"),
        ('keys: {1: "secret"}', "MASTER_KEY_WEAK"),
        ('keys: {1: "' + ONE.hex() + '"}\nminimum: 2', "MASTER_KEYS_INVALID"),
        ('keys: {1: "' + ONE.hex() + '"}\nminimum: yes', "MASTER_KEYS_INVALID"),
        ('keys: {1: "' + ONE.hex() + '", 2: "' + ONE.hex() + '"}', "MASTER_KEYS_INVALID"),
        ('keys:\n  1: "' + ONE.hex() + '"\n  1: "' + TWO.hex() + '"', "FILE_MALFORMED"),
        ('keys: {1: {key: "' + ONE.hex() + '", not_before: soon}}', "MASTER_KEYS_INVALID"),
        ('keys: {1: {key: "' + ONE.hex() + '", not_before: 2999-01-01T00:00:00Z}}', "MASTER_KEYS_INVALID"),
        ('keys: {1: {key: "' + ONE.hex() + '", comment: x}}', "MASTER_KEYS_INVALID"),
        ('keys: {1: "' + ONE.hex() + '"}\nother: 1', "MASTER_KEYS_INVALID"),
    ],
)
def test_a_file_that_says_something_else_is_refused_and_no_key_is_shown(tmp_path, text, reason):
    """Numbers for texts, a version twice, one key for two versions, placeholders, times that are none."""
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(Refused) as raised:
        load_keyring(Settings(master_keys_file=path, state_dir=tmp_path))

    assert raised.value.reason == reason
    assert ONE.hex() not in str(raised.value)


def test_a_file_that_everybody_may_read_is_refused(tmp_path):
    """Keys that others on the machine can read are no keys."""
    path = written(tmp_path / "keys.yaml", Masters({1: ONE}))
    path.chmod(0o604)

    with pytest.raises(Refused, match="KEY_FILE_EXPOSED"):
        load_keyring(Settings(master_keys_file=path, state_dir=tmp_path))


def test_a_keyring_of_a_file_does_not_print(tmp_path):
    """Neither the ring nor what is in it shows a key."""
    made = keyring(tmp_path, Masters({1: bytes.fromhex(MASTER_KEY)}))

    assert not found_in(repr(made) + repr(made._held) + repr(made._now()))


def test_a_fingerprint_tells_keys_apart_and_is_no_part_of_one():
    """Two keys have two fingerprints, and none is in its key or the key's hash."""
    assert fingerprint(ONE) == fingerprint(ONE) != fingerprint(TWO)
    assert fingerprint(ONE) not in ONE.hex()


def test_rotations_at_once_lose_no_version(tmp_path):
    """Two operators that rotate at the same time make two versions."""
    path = written(tmp_path / "keys.yaml", Masters({1: ONE}))

    def rotate() -> None:
        keys_file.change(
            path, lambda held: Masters({**held.by_version, max(held.by_version) + 1: secrets.token_bytes(32)})
        )

    threads = [threading.Thread(target=rotate) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(keys_file.load(path).by_version) == list(range(1, 10))


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """The commands, over a file and a state of this test."""
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("INTERLOCK_MASTER_KEYS_FILE", str(tmp_path / "keys.yaml"))
    runner = CliRunner()

    def run(*arguments: str):
        return runner.invoke(app, [*arguments, "-o", "json"])

    return run


def test_new_rotate_and_list(cli, tmp_path):
    """A file is made, a version waits, one signs at once, and no command prints a key."""
    said = [cli("new"), cli("rotate", "--after", "60"), cli("list"), cli("rotate", "--after", "0"), cli("list")]
    first, last = (json.loads(said[number].stdout)["versions"] for number in (2, 4))

    assert [one.exit_code for one in said] == [0] * 5
    assert [line["state"] for line in first] == ["signs", "waits"]
    assert [line["state"] for line in last] == ["verifies", "verifies", "signs"]
    assert stat.S_IMODE((tmp_path / "keys.yaml").stat().st_mode) == 0o600
    keys = [key.hex() for key in keys_file.load(tmp_path / "keys.yaml").by_version.values()]
    assert not any(key in one.stdout for key in keys for one in said)


def test_new_takes_the_key_that_a_deployment_has(cli, tmp_path):
    """Sessions of before go on: the generated key becomes version 1."""
    before = load_keyring(Settings(state_dir=tmp_path / "state", master_keys_file=None))
    assert cli("new").exit_code == 0

    assert keys_file.load(tmp_path / "keys.yaml").by_version == before.masters


def test_new_overwrites_nothing(cli):
    """Keys that are there are never replaced."""
    cli("new")
    again = cli("new")

    assert (again.exit_code, json.loads(again.stdout)["error"]["reason"]) == (2, "KEYS_FILE_EXISTS")


def test_what_signs_is_not_dropped(cli):
    """Nor a version that is not there."""
    cli("new")
    reasons = [json.loads(cli("drop", version).stdout)["error"]["reason"] for version in ("1", "7")]

    assert reasons == ["MASTER_KEY_IN_USE", "MASTER_KEY_UNKNOWN"]


def test_a_minimum_never_falls(cli):
    """What was retired stays retired."""
    cli("new")
    cli("rotate", "--after", "0")
    assert cli("retire", "2").exit_code == 0
    again = cli("retire", "1")

    assert (again.exit_code, json.loads(again.stdout)["error"]["reason"]) == (2, "MASTER_KEYS_INVALID")


def test_check_and_commands_without_a_file_say_what_to_do(cli, tmp_path, monkeypatch):
    """No file named, and a file that is not there, are refused with a hint."""
    missing = json.loads(cli("check").stdout)["error"]
    monkeypatch.delenv("INTERLOCK_MASTER_KEYS_FILE")
    unnamed = json.loads(cli("list").stdout)["error"]

    assert (missing["reason"], unnamed["reason"]) == ("KEYS_FILE_MISSING", "KEYS_FILE_NOT_NAMED")
    assert missing["metadata"]["hint"]
    assert unnamed["metadata"]["hint"]


def test_certificates_are_made_and_renewed_under_one_authority(cli, tmp_path):
    """Every member has a certificate; a second run keeps the authority and replaces the rest; keys are their owner's."""
    out = tmp_path / "certificates"
    made = json.loads(cli("certificates", "--out", str(out)).stdout)
    before = {name: (out / name).read_bytes() for name in ("ca.pem", "session.pem")}
    cli("certificates", "--out", str(out))

    assert len(made["certificates"]) == 11
    assert (out / "ca.pem").read_bytes() == before["ca.pem"]
    assert (out / "session.pem").read_bytes() != before["session.pem"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.glob("*.key")} == {0o600}
