"""The settings of the Merkle log: its name, its key, how often it is signed, and where that is told (docs/audit.md)."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from interlock.domain.merkle.note import name_problem


class Checkpointing(BaseSettings):
    """A part of ``Settings``; kept apart because it is one subject."""

    audit_origin: str = Field(
        default="interlock.local/audit",
        description="Name of the audit log in its signed checkpoints, such as example.com/audit: one for each log, never "
        "changed. Auditors are given it with the public key.",
    )
    checkpoint_key_file: Path | None = Field(
        default=None,
        description="PEM file of the Ed25519 private key that signs checkpoints of the audit log, which nobody else may read. "
        "Absent: one is made once below state_dir; its public half lies beside it.",
    )
    checkpoint_entries: int = Field(
        default=256, ge=1, le=1_000_000, description="New entries of the audit log after which a checkpoint is signed."
    )
    checkpoint_s: float = Field(
        default=10,
        gt=0,
        le=3600,
        description="Time after which a checkpoint is signed if there are new entries, seconds.",
    )
    audit_anchor: Path | None = Field(
        default=None,
        description="Folder in another place of trust, such as another owner's volume, that checkpoints and leaf hashes are "
        "published to. Absent: an auditor has the log's word alone that its end is not missing.",
    )
    audit_anchor_required: bool = Field(
        default=False,
        description="Whether nothing more is sealed, and so released, while more than audit_anchor_max_lag entries are not "
        "published: AUDIT_ANCHOR_LAG. Needs audit_anchor. Absent: it is measured and told only.",
    )
    audit_anchor_max_lag: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000_000,
        description="Entries that may wait to be published, with audit_anchor_required.",
    )

    @field_validator("audit_origin")
    @classmethod
    def _name_of_a_log(cls, value: str) -> str:
        if problem := name_problem(value):
            raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _something_to_require(self) -> Checkpointing:
        if self.audit_anchor_required and self.audit_anchor is None:
            raise ValueError("audit_anchor_required needs audit_anchor")
        return self
