"""What a serving process tells its operator: its profile, what is missing, what went astray."""

from __future__ import annotations

from typing import Any

import structlog

from interlock.domain.errors import Refused, unavailable
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

NO_REVIEWERS_HINT = "what a person should review is halted; set INTERLOCK_REVIEWERS_FILE to have it held instead"


def missing_package(name: str, error: ModuleNotFoundError) -> Refused:
    """Return the refusal of a service whose package is not installed; a module of ours that is missing is a defect."""
    package = (error.name or "").split(".")[0]
    if package == "interlock":
        raise error
    return unavailable(
        "PACKAGE_MISSING",
        f"the {name} service needs the package {package}",
        retry_after_ms=0,
        hint=f"pip install 'interlock[{'dpe' if name == 'dpe' else 'all'}]'",
    )


def profile_line(settings: Settings) -> str:
    """Return in one line what the profile does to callers that know nothing of CRP, and what it takes to enforce."""
    if settings.unaware_callers == "observe":
        return (
            f"profile {settings.profile}: answers to callers that know nothing of CRP are watched, not stopped; "
            "to enforce: --profile enforce"
        )
    return f"profile {settings.profile}: every caller is held to the policy and the budget"


def warn_of_no_reviewers(settings: Settings) -> None:
    """Log that nobody can review."""
    if settings.reviewers_file is None and not settings.reviewers_by_rpc:
        log.warning("serve.no_reviewers", hint=NO_REVIEWERS_HINT)


def log_stray(_loop: Any, context: dict[str, Any]) -> None:
    """Log an unhandled exception by type and place only, because its text could contain a prompt."""
    log.error("loop.stray_exception", exc_info=context.get("exception"))
