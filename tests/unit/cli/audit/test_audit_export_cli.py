"""``interlock audit export`` and ``interlock audit stream``: what is left out, what is sent again, what is refused."""

from __future__ import annotations

import json
from functools import partial

import pytest
import yaml
from typer.testing import CliRunner

from interlock.audit import requests
from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.log_sql import SqliteLog
from interlock.cli.main import app
from interlock.domain.chain.audit_events import SEVERITIES
from tests.support.audit.audit import KEYRING, MASTER, Ticking, build, event, session_id
from tests.support.audit.streaming import SECRET

pytestmark = pytest.mark.req("AUD-4")


@pytest.fixture
def database(tmp_path):
    """A log with every severity in it."""
    path = tmp_path / "audit.db"
    log = SqliteLog(path)
    build(log, 2)
    kinds = ("FACT_RETRIEVED", "SESSION_CONTINUED", "PII_DETECTED", "DISPATCH_FAILED", "SAFETY_HALT")
    notes = requests.notes([event(kind, "{}") for kind in kinds])
    sealer = Sealer(KEYRING, Ticking(), lambda count: b"\0" * count)
    [outcome] = log.commit([partial(sealer.record, session_id=session_id(), window_id="", notes=notes)])
    assert outcome.error is None
    log.commit([lambda writing: writing.add_dead_letter("siem", 2, 4, "HTTP_400", "2026-05-25T10:00:00.000000Z")])
    log.commit([lambda writing: writing.set_cursor("siem", 7)])
    log.close()
    return path


@pytest.fixture
def run(database, tmp_path, monkeypatch):
    """Run the command on that log, with one sink that nobody can reach."""
    sinks = tmp_path / "sinks.yaml"
    sinks.write_text(yaml.safe_dump({"sinks": {"siem": {"url": "https://127.0.0.1:1/", "secret": SECRET}}}))
    monkeypatch.setenv("INTERLOCK_AUDIT_URL", f"sqlite:///{database}")
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("INTERLOCK_MASTER_KEY", MASTER.hex())
    monkeypatch.setenv("INTERLOCK_SINKS_FILE", str(sinks))
    monkeypatch.setenv("INTERLOCK_EGRESS_ALLOW", "127.0.0.1:1")
    return lambda *arguments: CliRunner().invoke(app, ["audit", *arguments])


@pytest.mark.parametrize("least", ["DEBUG", "INFO", "WARN"])
@pytest.mark.parametrize("form", ["ndjson", "ocsf"])
def test_what_is_milder_is_left_out_and_warnings_never_are(run, least, form):
    """SPEC-011 §6: DEBUG may be left out; WARN and CRITICAL are always there."""
    result = run("export", session_id(), "--format", form, "--min-severity", least)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    found = [line["severity"] if form == "ndjson" else line["unmapped"]["crp_severity"] for line in lines]

    assert result.exit_code == 0
    assert set(found) == set(SEVERITIES[SEVERITIES.index(least) :])


def test_warnings_cannot_be_left_out(run):
    """There is no such choice."""
    assert run("export", session_id(), "--min-severity", "CRITICAL").exit_code == 2


def test_status_tells_where_a_sink_is_and_what_it_did_not_accept(run):
    """Position, lag, and each dead letter with its reason."""
    result = run("stream", "status", "-o", "json")
    told = json.loads(result.stdout)

    assert result.exit_code == 0
    assert told["sinks"] == [
        {"sink": "siem", "format": "cloudevents", "cursor": 7, "lag": told["log_size"] - 7,
         "dead_letters": [{"first": 2, "last": 4, "reason": "HTTP_400", "at": "2026-05-25T10:00:00.000000Z"}]}
    ]  # fmt: skip
    assert SECRET not in result.output


def test_a_retry_that_fails_keeps_the_dead_letter(run):
    """Exit 1, the reason, and it is still there."""
    result = run("stream", "retry", "siem", "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["left"] == [{"first": 2, "last": 4, "reason": "EGRESS_FAILED"}]
    assert json.loads(run("stream", "status", "-o", "json").stdout)["sinks"][0]["dead_letters"]


def test_an_unknown_sink_is_refused(run):
    """Exit 2, and where to find the names."""
    result = run("stream", "retry", "nobody")
    assert (result.exit_code, "SINK_NOT_FOUND" in result.stderr) == (2, True)


def test_a_bad_sinks_file_is_refused_by_name(run, tmp_path):
    """And no secret is printed."""
    (tmp_path / "sinks.yaml").write_text("sinks: {siem: {url: https://x.example.com/, secret: whsec_hunter2}}")
    result = run("stream", "status")
    assert (result.exit_code, "sinks.siem.secret" in result.stderr) == (2, True)
    assert "hunter2" not in result.output
