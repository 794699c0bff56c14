"""The settings of retention: how long the audit log keeps what (docs/audit.md)."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class Retaining(BaseSettings):
    """A part of ``Settings``; kept apart because it is one subject."""

    retention_contents_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="Days after a session's last event after which its data key is destroyed: contents and reports are gone, "
        "its chain verifies as TRUNCATED. Absent: never.",
    )
    retention_events_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="Days after a session's last event after which its events are removed; a signed mark and the leaf hashes "
        "stay. The EU AI Act asks for six months at least of high-risk systems. Absent: never.",
    )
