"""The settings of the session store."""

from __future__ import annotations

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings


class SessionStoring(BaseSettings):
    """Where sessions are held, and what that store must be fit for."""

    redis_url: str = Field(
        default="",
        description="Redis or Valkey that holds the sessions: redis://, rediss:// (TLS), unix://, or the master that Sentinel names, "
        "sentinel://HOST:PORT,HOST:PORT/MASTER (sentinels:// with TLS). Absent: an embedded Valkey below state_dir. memory:// keeps "
        "sessions in this one process; after its end they are rebuilt from the audit log.",
    )
    allow_unfit_store: bool = Field(
        default=False,
        description="Whether a Redis or Valkey that evicts or has no append-only file may hold sessions: for development. "
        "Absent: such a store is not ready, and sessions on it are refused with SESSION_STORE_UNFIT.",
    )
    redis_wait_replicas: int = Field(
        default=0,
        ge=0,
        le=10,
        description="Replicas that must hold a settlement before it is answered (WAIT); with fewer the call is refused, and its "
        "charge stays. 0: none.",
    )

    @field_validator("redis_url")
    @classmethod
    def _known_redis_scheme(cls, value: str) -> str:
        if value and not value.startswith(
            ("redis://", "rediss://", "unix://", "sentinel://", "sentinels://", "memory://")
        ):
            raise ValueError("must start with redis://, rediss://, unix://, sentinel:// or memory://")
        return value
