"""Settings: where they come from, and what a wrong one says."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Refused
from interlock.runtime.settings.loading import deprecated, load, unknown_variables
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.values import without_password
from tests.support.texts.canary import MASTER_KEY, found_in


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No INTERLOCK_ variable of the machine that runs the tests."""
    import os

    for name in [name for name in os.environ if name.upper().startswith("INTERLOCK_")]:
        monkeypatch.delenv(name)


def test_defaults_need_nothing():
    """Without any setting there are settings."""
    assert load().sidecar_http_port == 7070


def test_environment_over_file_over_default(tmp_path, monkeypatch):
    """A variable wins over the file, and the file over the default."""
    file = tmp_path / "interlock.yaml"
    file.write_text("session_port: 1001\npolicy_port: 1002\n")
    monkeypatch.setenv("INTERLOCK_POLICY_PORT", "2002")
    settings = load(file)

    assert (settings.session_port, settings.policy_port, settings.dpe_port) == (1001, 2002, 7083)


def test_variable_names_the_file(tmp_path, monkeypatch):
    """INTERLOCK_CONFIG_FILE names the file when the caller does not."""
    file = tmp_path / "interlock.yaml"
    file.write_text("session_port: 1001\n")
    monkeypatch.setenv("INTERLOCK_CONFIG_FILE", str(file))

    assert load().session_port == 1001


def test_unknown_key_of_the_file_is_refused(tmp_path):
    """A misspelt key is refused and the near one suggested; it is not passed over in silence."""
    file = tmp_path / "interlock.yaml"
    file.write_text("redis_ulr: redis://localhost\n")

    with pytest.raises(Refused, match="redis_ulr is no setting; did you mean redis_url") as raised:
        load(file)
    assert raised.value.reason == "SETTINGS_INVALID"


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "FileNotFoundError"), ("a: [1\n", "line 2"), ("- a\n", "not a mapping"), (b"\xff\xfe\x00", "Unicode")],
)
def test_unreadable_file_is_refused(tmp_path, content, told):
    """A file that is absent, no YAML, no mapping or no text is refused with its name."""
    file = tmp_path / "interlock.yaml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(Refused, match=told) as raised:
        load(file)
    assert raised.value.reason == "CONFIG_FILE_UNREADABLE"
    assert "interlock.yaml" in raised.value.message


@pytest.mark.req("BUD-2")
@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("low", "0.06", "decrement_low must be a number from 0.00 to 0.05"),
        ("low", "-0.01", "decrement_low must be a number from 0.00 to 0.05"),
        ("medium", "0.01", "decrement_medium must be a number from 0.02 to 0.10"),
        ("medium", "0.11", "decrement_medium must be a number from 0.02 to 0.10"),
        ("high", "0.09", "decrement_high must be a number from 0.10 to 0.25"),
        ("high", "0.26", "decrement_high must be a number from 0.10 to 0.25"),
        ("critical", "0.24", "decrement_critical must be a number from 0.25 to 0.50"),
        ("critical", "0.51", "decrement_critical must be a number from 0.25 to 0.50"),
        ("critical", "nan", "decrement_critical must be a number from 0.25 to 0.50"),
        ("high", "inf", "decrement_high must be a number from 0.10 to 0.25"),
        ("high", "much", "decrement_high must be a number from 0.10 to 0.25"),
    ],
)
def test_decrement_out_of_range_names_the_range(monkeypatch, name, value, named):
    """A decrement outside SPEC-012 §2.2 refuses to start, naming both ends of the range."""
    monkeypatch.setenv(f"INTERLOCK_DECREMENT_{name.upper()}", value)

    with pytest.raises(Refused, match=named):
        load()


@pytest.mark.req("BUD-2")
def test_decrement_bounds_are_inclusive(monkeypatch):
    """Both ends of each range are allowed."""
    ends = {"LOW": (0, 0.05), "MEDIUM": (0.02, 0.10), "HIGH": (0.10, 0.25), "CRITICAL": (0.25, 0.50)}
    for side in (0, 1):
        for level, both in ends.items():
            monkeypatch.setenv(f"INTERLOCK_DECREMENT_{level}", str(both[side]))
        assert load().decrement_critical == ends["CRITICAL"][side]


@pytest.mark.req("BUD-2")
def test_default_decrements():
    """LOW 0, MEDIUM 0.05, HIGH 0.15, CRITICAL 0.35 (SPEC-012 §2.2)."""
    settings = load()

    assert [getattr(settings, f"decrement_{level}") for level in ("low", "medium", "high", "critical")] == [
        0.0, 0.05, 0.15, 0.35,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("REDIS_URL", "localhost:6379", "must start with redis://"),
        ("AUDIT_URL", "mysql://x", "must start with sqlite:///"),
        ("UPSTREAM_BASE_URL", "api.example.com/v1", "must be a URL that starts with http"),
        ("SESSION_ADDRESS", "session", "must be HOST:PORT"),
        ("DATA_REGION", "eu", "must be two capital letters"),
        ("RPC_TIMEOUT_S", "0", "must be a number above 0 to 3600"),
        ("SESSION_PORT", "70000", "from 0 to 65535"),
        ("SESSION_PORT", "tcp:/10.0.0.1:7081", "from 0 to 65535"),
        ("LOG_LEVEL", "loud", "log_level"),
    ],
)
def test_wrong_setting_says_what_is_right(monkeypatch, variable, value, told):
    """Every refusal names the setting and what it must be."""
    monkeypatch.setenv(f"INTERLOCK_{variable}", value)

    with pytest.raises(Refused, match=told) as raised:
        load()
    assert variable.lower() in raised.value.message


@pytest.mark.req("SVC-5")
def test_refusal_never_shows_a_value(monkeypatch, tmp_path):
    """A refused file that holds a key names the fault and not the key."""
    file = tmp_path / "interlock.yaml"
    file.write_text(f"master_key: [{MASTER_KEY}]\nsession_port: {MASTER_KEY}\n")

    with pytest.raises(Refused) as raised:
        load(file)
    assert not found_in(str(raised.value) + str(raised.value.__context__ is None))


def test_secrets_do_not_print():
    """The settings' own text shows no key."""
    assert not found_in(repr(Settings(master_key=MASTER_KEY, upstream_api_key=MASTER_KEY)))


def test_unknown_variables_are_found():
    """A misspelt variable is found; known ones and those of others are not."""
    environment = {"INTERLOCK_REDIS_ULR": "", "INTERLOCK_REDIS_URL": "", "INTERLOCK_CONFIG_FILE": "", "HOME": ""}

    assert unknown_variables(environment) == ["INTERLOCK_REDIS_ULR"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@host:1/0", "redis://***@host:1/0"),
        ("redis://host:1/0", "redis://host:1/0"),
        ("unix:///run/valkey.sock?db=0", "unix:///run/valkey.sock?db=0"),
    ],
)
def test_shown_url_has_no_password(url, shown):
    """A URL is shown without the part that could hold a password."""
    assert without_password(url) == shown


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("given", "enabled", "forbidden"),
    [
        ({}, (), False),
        ({"remedies": "stitch, redispatch"}, ("redispatch", "stitch"), False),
        ({"remediation": "full"}, ("redispatch", "continue", "stitch"), False),
        ({"remediation": "none"}, (), True),
        ({"remediation": "none", "remedies": "continue"}, ("continue",), False),
        ({"remediation": "full", "remedies": ""}, (), False),
    ],
)
def test_remedies_are_off_and_the_older_setting_is_still_read(given, enabled, forbidden, monkeypatch):
    """By the environment; where both are set, the newer one counts."""
    for name, value in given.items():
        monkeypatch.setenv(f"INTERLOCK_{name.upper()}", value)
    settings = load()

    assert (settings.enabled_remedies, settings.forbids_remedies) == (enabled, forbidden)
    assert list(deprecated(settings)) == (["remediation"] if "remediation" in given else [])
    assert settings.max_provider_calls == 2


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("remedies: retry\n", "remedies must be a list of redispatch, continue, stitch, or empty"),
        ("remedies: 3\n", "remedies must be a list of redispatch, continue, stitch, or empty"),
        ("remedies: [redispatch, 3]\n", "remedies must be a list of redispatch, continue, stitch, or empty"),
        ("remediation: some\n", "remediation"),
        ("max_provider_calls: 0\n", "max_provider_calls must be a number from 1 to 100"),
        ("grounding_mode: strict\n", "grounding_mode"),
    ],
)
def test_a_wrong_setting_of_the_remedies_is_refused_by_its_name(tmp_path, content, told):
    """With what it may be."""
    file = tmp_path / "interlock.yaml"
    file.write_text(content)

    with pytest.raises(Refused, match=told) as raised:
        load(file)
    assert raised.value.reason == "SETTINGS_INVALID"


def test_remedies_may_be_a_list_of_the_file(tmp_path):
    """YAML has lists."""
    file = tmp_path / "interlock.yaml"
    file.write_text("remedies: [stitch, continue]\n")

    assert load(file).enabled_remedies == ("continue", "stitch")
