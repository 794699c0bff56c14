"""The window DAG drawn, in the formats that a person or a program reads (DAG-12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import invalid

Draw = Callable[[Sequence[session_pb2.Session]], str]


@dataclass(frozen=True)
class Form:
    """One format: how it is drawn, and what HTTP calls it."""

    draw: Draw
    media_type: str


def _drawn(name: str) -> Draw:
    def draw(sessions: Sequence[session_pb2.Session]) -> str:
        from interlock.runtime.pictures import picture  # half a MiB that most sidecars never need

        drawn: str = getattr(picture, name)(sessions)
        return drawn

    return draw


FORMS: Mapping[str, Form] = {
    "mermaid": Form(_drawn("mermaid"), "text/vnd.mermaid; charset=utf-8"),
    "dot": Form(_drawn("dot"), "text/vnd.graphviz; charset=utf-8"),
    "json": Form(_drawn("as_json"), "application/json"),
    "text": Form(_drawn("text"), "text/plain; charset=utf-8"),
}


def picture_form(name: str) -> Form | None:
    """Return the format of that name, ``None`` for no name. Refused with INVALID_PARAMETER for one that is not there."""
    if not name:
        return None
    form = FORMS.get(name)
    if form is None:
        raise invalid("INVALID_PARAMETER", f"format must be one of {', '.join(FORMS)}", param="format")
    return form
