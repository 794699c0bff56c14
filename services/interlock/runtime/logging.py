"""JSON lines on standard error, one event per line, with harmless values only (SVC-5).

No code may log a token, key, prompt or answer. Two defences support this rule (reliability.md A-43):

* a field is written only if its key is in ``SAFE_KEYS``; any other value becomes ``[redacted]``;
* texts that look like a credential are redacted everywhere, and long texts are cut.

Exceptions are written as types and places, never as their text, which may quote the handled data.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TextIO

import structlog
from prometheus_client import Counter

LOST = Counter("interlock_log_lines_lost", "Log lines that could not be written.")

REDACTED = "[redacted]"
LONGEST = 256

SAFE_KEYS = frozenset({
    # in every line
    "event", "level", "timestamp", "logger", "trace_id", "where", "exception",
    # ids: minted by Interlock, checked by shape, never secret
    "session_id", "root_session_id", "parent_session_id", "window_id", "trail_id", "request_id", "report_id",
    "agent_type", "scope", "key_version", "root_window_id", "caller_id", "kernel_id", "experiment_id", "uid",
    # names from Interlock's code and settings
    "service", "services", "method", "code", "reason", "kind", "state", "from_state", "to_state", "status", "name",
    "action", "decision", "directive", "directives", "level_name", "pattern", "risk", "risk_level", "strategy", "stage", "stages",
    "event_type", "integrity", "breaker", "dependency", "missing", "hint", "namespace", "part", "component", "setting", "settings",
    "profile", "unaware_callers", "would", "address", "host", "url", "path", "folder", "version", "model", "models", "provider", "slot",
    "signal", "topology", "faults", "outcome", "duplicate", "mode", "script", "phase", "ready", "revision",
    "what", "fault", "operation", "caller", "binding", "severity", "choice", "shape", "journal_mode", "engine", "route", "lifespan", "http_method",
    # numbers
    "port", "pid", "count", "entries", "period", "ends_at", "window_number", "sequence", "attempt", "attempts", "retries", "index", "rows", "size",
    "status_code", "exit_code", "claims", "facts", "windows", "events", "depth", "epoch", "batch", "composite", "flawed", "score",
    "quality", "threads", "sentences", "choices", "connections", "left_behind", "limit", "remaining", "number", "released",
    "tokens",
})  # fmt: skip
"""Keys whose values are ids, numbers, enums or names from Interlock's code. Adding a key is a decision about content."""

TYPE_NAMES = frozenset({"error", "error_type"})
"""Keys whose value is the name of an exception type. An exception's text, which may quote anything, is not accepted."""

_UNITS = ("_ms", "_s", "_us", "_micros", "_bytes", "_count", "_total", "_port", "_ratio")

_SECRETS = re.compile(
    r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{8,}){1,2}"  # session tokens and JWTs: base64url of {"
    r"|\b(?:sk|pk|rk|ghp|xox[abp]|whsec)[-_][A-Za-z0-9_-]{8,}"  # provider and forge keys
    r"|(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"
    r"|(?<=://)[^/\s@]+@"  # user and password of a URL
    r"|(?<!sha256:)(?<![0-9a-f])[0-9a-f]{64,}"  # a master key; hashes carry their prefix
)

_SHORT = 64
_KEYS = ("sk_", "pk_", "rk_", "ghp_", "xox", "whsec_")
"""How the keys begin that may be identifiers."""
_NUMBERS = frozenset({int, float, bool, type(None)})

_FOREIGN_TEXT = ("uvicorn", "opentelemetry")
"""Loggers whose messages are fixed templates. For every other library, only the place of the call is written."""


def configure(level: str = "info", *, stream: TextIO | None = None, cache: bool = True) -> None:
    """Send structlog and standard logging to *stream* as JSON lines. The entry point of the process calls it once."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[_line_of],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=_Line,
        cache_logger_on_first_use=cache,
    )
    _Line.stream = stream or sys.stderr
    handler = _Foreign(_Line.stream)
    # Libraries log from WARNING: their lower levels are noise, and Interlock writes its own access line.
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


class _Line:
    """Writes finished lines to the stream that was configured last, also for loggers that were made earlier.

    A line that cannot be written is lost, and the logging call continues: a full disk behind standard error must not
    affect an answer, and its error must not reach a caller.
    """

    stream: ClassVar[TextIO] = sys.stderr

    def __init__(self, *_names: object) -> None:
        """Accept the logger's name, which structlog passes and no line shows."""

    def msg(self, line: str) -> None:
        try:
            self.stream.write(line + "\n")
            self.stream.flush()
        except (OSError, ValueError):
            LOST.inc()

    debug = info = warning = warn = error = critical = exception = fatal = log = msg


def scrub(text: str) -> str:
    """Return *text* with credentials redacted, cut to the maximum length."""
    if len(text) < _SHORT and (text.isalnum() or (text.isidentifier() and not text.startswith(_KEYS))):
        return text  # a plain word or an id: no pattern above is that short without punctuation
    clean = _SECRETS.sub(REDACTED, text)
    return clean if len(clean) <= LONGEST else clean[:LONGEST] + "…"


def describe(error: BaseException | None) -> dict[str, Any]:
    """Return the types and places of an exception and its causes, without their texts."""
    if error is None:
        return {}
    described: dict[str, Any] = {"type": type(error).__name__, "frames": _frames(error.__traceback__)}
    if isinstance(error, ImportError) and error.name:
        described["module"] = error.name
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and cause is not error:
        described["cause"] = {"type": type(cause).__name__, "frames": _frames(cause.__traceback__)}
    return described


def _frames(traceback: TracebackType | None) -> list[str]:
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith("<frozen"):
            places.append(f"{_short(code.co_filename)}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return places[-20:]


def _short(filename: str) -> str:
    return "/".join(Path(filename).parts[-2:])


Event = MutableMapping[str, Any]

TRACE_ID: ContextVar[str] = ContextVar("trace_id", default="")
"""The trace that the lines of a block belong to, 32 hex digits; its spans set it. Empty: none."""


def _line_of(_logger: Any, method: str, event: Event) -> str:
    """Return the line of *event*: the fields in ``SAFE_KEYS`` without credentials, all others redacted."""
    fields: dict[str, Any] = {
        "timestamp": datetime.now(UTC).isoformat(timespec="microseconds")[: -len("+00:00")] + "Z",
        "level": "error" if method == "exception" else method,
        "event": "",
    }
    if within := TRACE_ID.get():
        fields["trace_id"] = within
    if "exc_info" in event or "stack_info" in event:
        _describe_exception(event)
    for key, value in event.items():  # the common cases first: a line has ten fields, and a governed call several lines
        kind = type(value)
        if key not in SAFE_KEYS or (kind is not str and kind not in _NUMBERS):
            fields[key] = _kept(key, value)
        else:
            fields[key] = scrub(value) if kind is str else value
    # ASCII only, so that a log cannot control a terminal. DEL is the only control character that JSON does not escape.
    return _ASCII_JSON.encode(fields).replace("\x7f", "\\u007f")


_ASCII_JSON = json.JSONEncoder(ensure_ascii=True)


def _describe_exception(event: Event) -> None:
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()[1]
    elif isinstance(given, tuple):
        given = given[1]
    if isinstance(given, BaseException):
        event["exception"] = describe(given)
    event.pop("stack_info", None)


def _kept(key: str, value: Any) -> Any:
    if key == "exception":
        return value if isinstance(value, Mapping) else REDACTED
    if key in TYPE_NAMES:
        return value if isinstance(value, str) and value.isidentifier() and value[0].isupper() else REDACTED
    if key in SAFE_KEYS:
        return _harmless(value)
    if type(value) in _NUMBERS and key.endswith(_UNITS):
        return value
    return REDACTED


def _harmless(value: Any) -> Any:
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, list | tuple | set | frozenset):
        return [_harmless(item) for item in list(value)[:32]]
    # The keys of a mapping follow the same rule as those of a line; any other object could print anything.
    return {k: _kept(k, v) for k, v in value.items()} if isinstance(value, Mapping) else REDACTED


class _Foreign(logging.Handler):
    """Passes the records of libraries through the same processors."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        text = str(record.msg) if record.name.split(".")[0] in _FOREIGN_TEXT else "library.message"
        event: Event = {
            "event": text.strip(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "where": f"{_short(record.pathname)}:{record.lineno} {record.funcName}",
            "exc_info": record.exc_info,
        }
        try:
            self._stream.write(_line_of(None, event["level"], event) + "\n")
        except Exception:  # noqa: BLE001 - a failure to log must not end the logged code
            self.handleError(record)
