"""Where the decision service is and how a call to it is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

DEFAULT_AT = "127.0.0.1:7086"
AT, TICKET = "INTERLOCK_DECISION_AT", "INTERLOCK_DECISION_TICKET"
"""The environment of an agent's process: what any language reads."""
LARGEST_BYTES = 64 << 20
OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_BYTES),
    # An agent waits for its next task and sends nothing: only a ping tells it that its line is dead.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),  # of gRPC's own pings, for which a keepalive would wait a minute
    ("grpc.http2.max_pings_without_data", 0),
    # A service that was away for long is found again within seconds.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)
_DETAILS = "grpc-status-details-bin"


class DecisionRefusedError(Exception):
    """A call that the decision service refused, or that got no answer. Branch on ``reason``."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        """Constant name, such as DECISION_TICKET_INVALID."""
        super().__init__(f"{reason}: {message}" if message else reason)


def place(at: str) -> str:
    """Return the address of the decision service: given, from INTERLOCK_DECISION_AT, or the default port here."""
    return at or os.environ.get(AT, DEFAULT_AT)


def credentials(ca: Path | str | None) -> grpc.ChannelCredentials | None:
    """Return the credentials of a TLS channel; ``None`` for plain text."""
    return grpc.ssl_channel_credentials(Path(ca).read_bytes()) if ca else None


def refusal(error: Any) -> DecisionRefusedError:
    """Return a gRPC error as a refusal with its constant reason; without one, its status."""
    for name, value in error.trailing_metadata() or ():
        if name == _DETAILS:
            status = status_pb2.Status.FromString(value)
            for detail in status.details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return DecisionRefusedError(info.reason, status.message)
    return DecisionRefusedError(error.code().name, error.details() or "")
