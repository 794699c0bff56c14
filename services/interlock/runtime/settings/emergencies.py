"""The settings of emergency actions that a sidecar records by itself, beside the others: one flat model in several files."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from interlock.runtime.settings.signing_in import SignInDeclarations


class EmergencyDeclarations(SignInDeclarations):
    """The settings of what is recorded while a kernel cannot be reached."""

    # == Emergency actions of kernels

    emergency_dir: Path | None = None
    """Folder in which a sidecar keeps what it knows of kernels, and emergency actions that it recorded while their kernel could not be
    reached: durable, its own, and there again after a restart. Absent: emergencies below state_dir."""
    emergency_bytes: int = Field(default=4_194_304, ge=16_384, le=1_073_741_824)
    """Size of the recorded emergency actions that are not sealed yet, bytes; about a kilobyte each. Beyond it another one is refused with
    KERNEL_EMERGENCIES_FULL."""
    emergency_reach_s: float = Field(default=3.0, ge=0.1, le=60.0)
    """How long a kernel is tried to be reached before its emergency action is recorded here, seconds."""
