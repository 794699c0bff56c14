"""The master key: given or made, never weak, never two."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from interlock.domain.errors import Refused
from interlock.runtime.keys.derivation import HMAC, SIGN, Keyring, load_keyring
from interlock.runtime.settings.model import Settings
from tests.support.texts.canary import MASTER_KEY, found_in


@pytest.mark.req("TOK-1")
@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("hunter2", "not hexadecimal"),
        ("ab" * 31, "31 bytes"),
        ("00" * 32, "placeholder"),
        ("deadbeef" * 8, "placeholder"),
        ("", "0 bytes"),
    ],
)
def test_weak_key_is_refused(key, why):
    """A key that is short, no hexadecimal or repeats itself is refused, and the refusal does not show it."""
    with pytest.raises(Refused, match=why) as raised:
        load_keyring(Settings(master_key=key))

    assert raised.value.reason == "MASTER_KEY_WEAK"
    assert not key or key not in str(raised.value)


def test_generated_key_is_private(tmp_path):
    """A key that we make is readable by its owner only, and so is its folder."""
    load_keyring(Settings(state_dir=tmp_path / "state"))

    assert stat.S_IMODE((tmp_path / "state" / "master.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_generated_key_stays(tmp_path):
    """A second start reads the key of the first."""
    first, second = (load_keyring(Settings(state_dir=tmp_path)) for _ in range(2))

    assert first.masters == second.masters


def test_racing_processes_agree(tmp_path):
    """Processes that start at once on an empty folder end up with one key and leave no scratch file."""
    program = (
        "import sys; from pathlib import Path; from interlock.runtime.settings.model import Settings; "
        "from interlock.runtime.keys.derivation import load_keyring; sys.stdin.readline(); "
        "print(load_keyring(Settings(state_dir=Path(sys.argv[1]))).masters[1].hex())"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    for racer in racers:
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    keys = {racer.communicate()[0] for racer in racers}

    assert len(keys) == 1
    assert len(keys.pop().strip()) == 64
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]


def test_unreadable_folder_is_refused(tmp_path):
    """A state folder that is a file is refused with its path."""
    (tmp_path / "state").write_text("")

    with pytest.raises(Refused, match="MASTER_KEY_UNREADABLE"):
        load_keyring(Settings(state_dir=tmp_path / "state"))


def test_broken_key_file_is_refused(tmp_path):
    """A key file that was cut short is refused, not padded and not replaced."""
    (tmp_path / "master.key").write_text("abcd")
    (tmp_path / "master.key").chmod(0o600)

    with pytest.raises(Refused, match="MASTER_KEY_WEAK"):
        load_keyring(Settings(state_dir=tmp_path))
    assert (tmp_path / "master.key").read_text() == "abcd"


@pytest.mark.req("TOK-1")
def test_purposes_and_sessions_have_their_own_keys():
    """Signing and sealing, and any two sessions, never share a key."""
    keyring = load_keyring(Settings(master_key=MASTER_KEY))
    keys = {keyring.derive(1, session, purpose) for session in ("a", "b") for purpose in (SIGN, HMAC)}

    assert len(keys) == 4


@pytest.mark.req("TOK-1")
def test_derivation_is_hkdf_sha256():
    """The derived key equals what another implementation derives (RFC 5869)."""
    master, session_id = bytes(range(32)), "crp_sess_" + "0" * 32
    expected = HKDF(algorithm=SHA256(), length=32, salt=session_id.encode(), info=SIGN).derive(master)

    assert Keyring({1: master}).derive(1, session_id, SIGN) == expected


@pytest.mark.req("TOK-4")
def test_highest_version_is_current_and_old_ones_stay():
    """New sessions use the highest version; an old one still derives; an unknown one does not."""
    keyring = Keyring({1: bytes(range(32)), 2: bytes(range(32, 64))})

    assert keyring.current == 2
    assert keyring.derive(1, "s", SIGN)
    assert keyring.derive(3, "s", SIGN) is None


def test_keyring_does_not_print():
    """A keyring's text shows no key."""
    assert not found_in(repr(load_keyring(Settings(master_key=MASTER_KEY))))
