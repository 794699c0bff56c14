"""The settlement of a window as a message and as the text that the log stores: canonical JSON, covered by the chain's hash."""

from __future__ import annotations

from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from interlock.api.session.v1 import session_pb2
from interlock.domain.chain.canonical import canonical_json
from interlock.runtime.proto_json import as_json


def settlement_json(settlement: session_pb2.CommitWindowRequest) -> str | None:
    """Return the text that stores *settlement*, the same in every process and the same as from its sender's JSON.

    ``None`` where it or an edge of it holds a field of a later version, which the text would lack.
    """
    parts: list[Message] = [settlement, *settlement.edges]
    if any(len(UnknownFieldSet(part)) for part in parts):
        return None
    return canonical_json(as_json(settlement))


def settlement_message(text: str) -> session_pb2.CommitWindowRequest | None:
    """Return the settlement that *text* stores; ``None`` where this version cannot read all of it."""
    try:
        return Parse(text, session_pb2.CommitWindowRequest())
    except (ParseError, ValueError):  # a log that was tampered with may hold what is no text at all
        return None
