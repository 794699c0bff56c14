"""Who is calling a sidecar. The rules are the runtime's: the decision service has the same callers."""

from interlock.runtime.keys.api_keys import (
    ANONYMOUS,
    INVALID,
    UNVERIFIED,
    ApiKeys,
    Caller,
    load_api_keys,
    require_keys,
)

__all__ = ["ANONYMOUS", "INVALID", "UNVERIFIED", "ApiKeys", "Caller", "load_api_keys", "require_keys"]
