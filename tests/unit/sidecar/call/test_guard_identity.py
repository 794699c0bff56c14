"""A caller's key becomes a scope."""

from __future__ import annotations

import hashlib

import pytest
from structlog.testing import capture_logs

from interlock.domain.errors import Kind, Refused
from interlock.runtime.keys.api_keys import ApiKeys, load_api_keys

KEY = "sk-test-key-0123456789"
DIGEST = hashlib.sha256(KEY.encode()).hexdigest()


def refusal(keys: ApiKeys, *headers: str) -> Refused:
    with pytest.raises(Refused) as caught:
        keys.caller(headers)
    return caught.value


def file_of(tmp_path, text: str):
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    return path


@pytest.mark.req("TOK-3")
def test_without_a_list_every_key_is_a_scope_of_its_own():
    """The scope is the beginning of the key's hash, and no key is anonymous."""
    keys = load_api_keys(None)

    assert keys.caller([f"Bearer {KEY}"]).scope == "key_" + DIGEST[:24]
    assert keys.caller([f"bearer {KEY}"]).key == KEY
    assert keys.caller([]).scope == "anonymous"


@pytest.mark.req("TOK-3")
def test_a_listed_key_has_its_name(tmp_path):
    """With a list the configured name is the scope, and every other key is refused."""
    keys = load_api_keys(file_of(tmp_path, f"team-a: {DIGEST}\n"))

    assert keys.caller([f"Bearer {KEY}"]).scope == "team-a"
    for refused in (refusal(keys), refusal(keys, "Bearer other"), refusal(keys, "Bearer " + DIGEST)):
        assert (refused.kind, refused.reason) == (Kind.UNAUTHENTICATED, "API_KEY_INVALID")


@pytest.mark.parametrize(
    "headers", [("Basic abc",), ("Bearer",), ("Bearer ",), ("Bearer a b",), ("Bearer \u241f",), ("",),
                ("Bearer a", "Bearer a"), ("Bearer " + "x" * 4097,)],
)  # fmt: skip
def test_a_malformed_authorization_is_refused(headers):
    """Another scheme, spaces, two headers: nothing of it counts as anonymous."""
    assert refusal(ApiKeys(None), *headers).reason == "API_KEY_INVALID"


def test_a_key_is_in_no_text(tmp_path):
    """Neither a refusal nor a printed caller shows the key."""
    keys = load_api_keys(file_of(tmp_path, f"team-a: {'f' * 64}\n"))
    refused = refusal(keys, f"Bearer {KEY}")

    assert KEY not in str(refused) + str(refused.metadata)
    assert KEY not in repr(ApiKeys(None).caller([f"Bearer {KEY}"]))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "- a", "a: b", f"a b: {DIGEST}", f"a: {DIGEST.upper()}", f"a: {DIGEST}\nb: {DIGEST}",
     f"anonymous: {DIGEST}", f"key_x: {DIGEST}", f"1: {DIGEST}", "a: [", "a: !!python/object:os.system {}"],
)  # fmt: skip
def test_a_list_that_cannot_be_read_is_refused(tmp_path, text):
    """Nothing starts on a list of keys that might not say what its author meant."""
    with pytest.raises(Refused) as caught:
        load_api_keys(file_of(tmp_path, text))

    assert caught.value.reason == "API_KEYS_FILE_INVALID"


def test_a_missing_list_is_refused(tmp_path):
    """A path that names no file does not mean: accept everybody."""
    with pytest.raises(Refused, match="API_KEYS_FILE_INVALID"):
        load_api_keys(tmp_path / "absent.yaml")


def test_a_key_is_added_and_taken_away_without_a_restart(tmp_path):
    """A list that changes is in force at the next look; one that cannot be used is told and the good one stays."""
    path = file_of(tmp_path, f"team-a: {DIGEST}\n")
    keys = load_api_keys(path)
    path.write_text(f"team-b: {DIGEST}\n")
    keys._listed.refresh()
    assert keys.caller([f"Bearer {KEY}"]).scope == "team-b"
    for bad in ("", "team-b: short\n", f"team-b: {DIGEST}\nteam-b: {'a' * 64}\n"):
        path.write_text(bad)
        keys._listed.refresh()
        assert keys.caller([f"Bearer {KEY}"]).scope == "team-b"
    path.write_text(f"team-c: {'a' * 64}\n")
    keys._listed.refresh()

    assert refusal(keys, f"Bearer {KEY}").reason == "API_KEY_INVALID"


def test_a_list_that_everybody_may_change_is_refused(tmp_path):
    """Who could write the list could let anybody in."""
    path = file_of(tmp_path, f"team-a: {DIGEST}\n")
    path.chmod(0o666)

    with pytest.raises(Refused, match="API_KEYS_FILE_INVALID"):
        load_api_keys(path)


def test_a_list_that_everybody_may_read_is_told(tmp_path):
    """A weak key could be found from its hash, so the operator hears of it."""
    path = file_of(tmp_path, f"team-a: {DIGEST}\n")
    path.chmod(0o644)
    with capture_logs() as lines:
        load_api_keys(path)

    assert [line["event"] for line in lines] == ["api_keys.readable"]


def test_a_name_may_have_two_keys_while_one_is_changed(tmp_path):
    """Both keys have the same scope, so the sessions of the old one go on with the new one."""
    other = hashlib.sha256(b"sk-new").hexdigest()
    keys = load_api_keys(file_of(tmp_path, f"team-a: [{DIGEST}, {other}]\n"))

    assert {keys.caller([f"Bearer {key}"]).scope for key in (KEY, "sk-new")} == {"team-a"}
    with pytest.raises(Refused, match="the same key"):
        load_api_keys(file_of(tmp_path, f"team-a: [{DIGEST}, {DIGEST}]\n"))
