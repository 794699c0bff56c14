"""The versions of the master key that the audit data of this deployment need."""

from __future__ import annotations

from contextlib import closing

from interlock.audit.store.opening import open_reader
from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings


def versions_used(settings: Settings) -> set[int] | None:
    """Return the versions that events, windows and contents name; ``None`` when there is no audit log yet.

    Refused with AUDIT_STORE_UNAVAILABLE when the audit log cannot be read.
    """
    try:
        with closing(open_reader(settings)) as reader:
            return reader.key_versions()
    except Refused as refused:
        if refused.reason == "AUDIT_LOG_NOT_FOUND":
            return None
        raise
