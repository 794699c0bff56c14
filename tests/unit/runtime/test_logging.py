"""What may stand in a log line, and what may not."""

from __future__ import annotations

import io
import json
import logging as stdlib
import warnings

import pytest
import structlog

from interlock.domain.risk.risk import RiskLevel
from interlock.runtime import logging
from tests.support.texts.canary import ALL, API_KEY, MASTER_KEY, PASSWORD, PROMPT, SESSION_TOKEN, found_in


@pytest.fixture
def output():
    """The text of this test's log."""
    root, stream = stdlib.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    logging.configure("info", stream=stream, cache=False)
    yield stream.getvalue
    structlog.reset_defaults()
    root.handlers[:] = before
    root.setLevel(level)
    stdlib.captureWarnings(capture=False)


@pytest.fixture
def log(output):
    return structlog.get_logger()


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.req("SVC-5")
def test_event_is_one_json_line(log, output):
    """An event with its fields is one JSON object on one line."""
    log.info("window.settled", session_id="crp_sess_1", charge_micros=150_000)

    [line] = lines(output())
    assert line.items() >= {
        "event": "window.settled", "level": "info", "session_id": "crp_sess_1", "charge_micros": 150_000,
    }.items()  # fmt: skip
    assert list(line)[:3] == ["timestamp", "level", "event"]


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("secret", ALL)
def test_no_field_outside_the_list_is_written(log, output, secret):
    """A field that nobody declared harmless is redacted, whatever it holds."""
    log.info("window.opened", prompt=secret, answer={"text": secret}, claim_text=[secret])

    assert not found_in(output())
    assert lines(output())[0]["prompt"] == "[redacted]"


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize(
    "text",
    [API_KEY, SESSION_TOKEN, MASTER_KEY, f"Bearer {PASSWORD}", f"redis://user:{PASSWORD}@host/0", f"basic {API_KEY}"],
)
@pytest.mark.parametrize("field", ["hint", "reason", "missing", "path"])
def test_credentials_are_redacted_even_where_text_is_allowed(log, output, field, text):
    """What looks like a credential is redacted inside fields that are written."""
    log.warning("service.not_ready", **{field: f"could not use {text} today"})

    assert not found_in(output())
    assert "today" in output()


@pytest.mark.req("SVC-5")
def test_credential_in_an_event_name_is_redacted(log, output):
    """Somebody who formats a secret into the event itself does not succeed either."""
    log.info(f"called with {API_KEY}")  # noqa: G004 - what must not help

    assert not found_in(output())


def test_hashes_and_ids_survive(log, output):
    """Redaction leaves what people search for: ids and prefixed hashes."""
    session_id, digest = "crp_sess_" + "ab" * 16, "sha256:" + "cd" * 32
    log.info("window.sealed", session_id=session_id, version=digest)

    assert (lines(output())[0]["session_id"], lines(output())[0]["version"]) == (session_id, digest)


def test_enum_is_written_by_name(log, output):
    """An enum of ours is written by its name."""
    log.info("dpe.completed", risk=RiskLevel.HIGH)

    assert lines(output())[0]["risk"] == "HIGH"


@pytest.mark.req("SVC-5")
def test_error_is_a_type_name(log, output):
    """A field for an error takes the name of its type; an error's text does not pass."""
    log.warning("audit.failed", error=type(ValueError()).__name__)
    log.warning("audit.failed", error=str(ValueError(PROMPT)), error_type=repr(ValueError(PROMPT)))

    assert lines(output())[0]["error"] == "ValueError"
    assert not found_in(output())


def test_long_text_is_cut(log, output):
    """A text in an allowed field is cut at 256 characters."""
    log.info("service.not_ready", hint="x" * 1000)

    assert len(lines(output())[0]["hint"]) == 257


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("control", ["\n", "\r", "\x1b[31m", "\x9b31m", "\x7f", "\u2028", "\u202e", "\x00"])
def test_control_characters_are_escaped(log, output, control):
    """No line is forged and no terminal steered: control and direction characters never stand raw in the log."""
    log.info("service.not_ready", hint=f'a{control}{{"event": "forged"}}')

    assert len(output().splitlines()) == 1
    assert not set(output().rstrip("\n")) & set("\n\r\x1b\x9b\x7f\u2028\u202e\x00")
    assert lines(output())[0]["hint"].startswith("a" + control)


@pytest.mark.req("SVC-5")
def test_exception_is_type_and_place_without_text(log, output):
    """An exception is logged by type and frames, its cause too; neither's text is written."""
    try:
        try:
            raise KeyError(API_KEY)
        except KeyError as cause:
            raise ValueError(PROMPT) from cause
    except ValueError:
        log.exception("guard.failed")

    [line] = lines(output())
    assert (line["exception"]["type"], line["exception"]["cause"]["type"]) == ("ValueError", "KeyError")
    assert "test_logging.py" in line["exception"]["frames"][-1]
    assert not found_in(output())


@pytest.mark.req("SVC-5")
def test_object_in_an_allowed_field_is_redacted(log, output):
    """Only texts, numbers and lists of them are written: an object's repr could hold anything."""
    log.info("window.opened", reason=ValueError(PROMPT), status=[ValueError(PROMPT)], path={"inner": PROMPT})

    assert not found_in(output())


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("name", ["asyncio", "grpc._cython.cygrpc", "sqlalchemy", "uvicorn.error"])
def test_libraries_log_through_the_same_door(output, name):
    """A library's record is a JSON line with its place; neither its arguments nor its exception's text are written."""
    try:
        raise ValueError(PROMPT)
    except ValueError:
        stdlib.getLogger(name).exception("failed for %s", PROMPT)

    [line] = lines(output())
    assert (line["logger"], line["level"], line["exception"]["type"]) == (name, "error", "ValueError")
    assert "test_logging.py" in line["where"]
    assert not found_in(output())


@pytest.mark.req("SVC-5")
def test_preformatted_library_text_is_not_written(output):
    """asyncio puts an exception's text into its message: of such libraries only the place is written."""
    stdlib.getLogger("asyncio").error(f"Task exception was never retrieved: ValueError('{PROMPT}')")  # noqa: G004 - asyncio does

    assert not found_in(output())
    assert lines(output())[0]["event"] == "library.message"


def test_library_template_is_written_where_known(output):
    """uvicorn's messages are fixed templates; they are written without their arguments."""
    stdlib.getLogger("uvicorn.error").warning("Invalid HTTP request received from %s", PROMPT)

    assert lines(output())[0]["event"] == "Invalid HTTP request received from %s"


@pytest.mark.req("SVC-5")
def test_warnings_do_not_print_their_text(output):
    """A Python warning is a line with its place."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(PROMPT, stacklevel=1)

    assert lines(output())[0]["logger"] == "py.warnings"
    assert not found_in(output())


def test_level_is_respected(log, output):
    """What is below the level is not written."""
    log.debug("rpc")

    assert output() == ""


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("kind", ["sk", "pk", "rk", "ghp", "xoxa", "xoxb", "xoxp", "whsec"])
def test_a_key_that_reads_like_an_id_is_redacted(log, output, kind):
    """An id is written as it is, a provider's key never, also where it is made of letters, digits and underscores alone."""
    log.info("window.opened", session_id="crp_sess_0123456789abcdef0123456789abcdef", reason=f"{kind}_live12345678")

    [line] = lines(output())
    assert (line["session_id"], line["reason"]) == ("crp_sess_0123456789abcdef0123456789abcdef", "[redacted]")


@pytest.mark.req("SVC-5")
@pytest.mark.usefixtures("output")
def test_a_line_that_cannot_be_written_ends_nothing():
    """A closed or full standard error loses the line and never raises into the call that logs."""
    stream = io.StringIO()
    logging.configure("info", stream=stream, cache=False)
    stream.close()

    structlog.get_logger().error("store.failed", reason="DISK_FULL")


@pytest.mark.usefixtures("output")
def test_a_logger_made_before_follows_the_stream_configured_last():
    """A cached logger does not keep writing to a stream that has been replaced."""
    first, second = io.StringIO(), io.StringIO()
    logging.configure("info", stream=first, cache=True)
    log = structlog.get_logger()
    log.info("one")
    logging.configure("info", stream=second, cache=False)

    log.info("two")

    assert ("one" in first.getvalue(), "two" in second.getvalue()) == (True, True)
