"""The probe of the profile: what it does to callers that know nothing of CRP, and what it lacks (docs/profiles.md)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from interlock.domain.approval import RELEASE
from interlock.domain.errors import Refused
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.profile_files import profile_values

NO_REVIEWER_HINT = (
    "`interlock oversight keygen`, then set INTERLOCK_REVIEWERS_FILE; held answers then wait for a person"
)


def profile(settings: Settings) -> Iterator[ProbeFinding]:
    """Check the profile: what it does, which of its values are overridden, and whether there is a reviewer.

    What it needs to start at all is among the settings: they are refused without it.
    """
    line = partial(ProbeFinding, "profile")
    if settings.unaware_callers == "observe":
        detail = f"{settings.profile}: callers that know nothing of CRP are watched, not stopped"
        yield line("profile", ProbeStatus.WARN, detail, "to enforce: `interlock serve --profile enforce`")
    else:
        yield line("profile", ProbeStatus.OK, f"{settings.profile}: every caller is held to the policy and the budget")
    for name in _overridden(settings):
        hint = "`interlock config show --changed` tells where the value comes from"
        yield line(name, ProbeStatus.WARN, f"is not what the profile {settings.profile} sets", hint)
    yield _callers(settings)
    yield _reviewers(settings)


def _callers(settings: Settings) -> ProbeFinding:
    line = partial(ProbeFinding, "profile", "callers")
    if settings.caller_budget:
        budget = f"a budget of {settings.caller_budget:g} in {settings.caller_period_s} s, above all sessions"
        if settings.upstream_api_key is not None and settings.api_keys_file is None and settings.agents_file is None:
            hint = "list the keys: INTERLOCK_API_KEYS_FILE"
            return line(ProbeStatus.WARN, f"all callers share {budget}: nobody verifies their keys", hint)
        return line(ProbeStatus.OK, f"each API key has {budget}")
    if settings.unaware_callers == "observe":
        return line(ProbeStatus.SKIP, "no budget: they are watched only")
    hint = "set INTERLOCK_CALLER_BUDGET, such as 1.0"
    return line(ProbeStatus.WARN, "no budget: an agent that is halted and starts anew has a full one", hint)


def _overridden(settings: Settings) -> list[str]:
    """Return the settings whose value is not their profile's. No profile sets a path or a secret, so values compare."""
    found = profile_values(settings.profile)
    return [name for name, value in found.items() if getattr(settings, name) != value]


def _reviewers(settings: Settings) -> ProbeFinding:
    line = partial(ProbeFinding, "profile", "reviewers")
    if settings.reviewers_file is None:
        if settings.reviewers_by_rpc:
            return line(ProbeStatus.OK, "by RPC; while none is registered, what a person should review is halted")
        detail = "there is none: what a person should review is halted (HUMAN_REVIEW_UNAVAILABLE)"
        return line(ProbeStatus.WARN, detail, NO_REVIEWER_HINT)
    from interlock.policy.reviewers import load_reviewers

    try:
        releasing = load_reviewers(settings.reviewers_file).may_any(RELEASE)
    except Refused:  # the configuration says what is wrong with the file
        return line(ProbeStatus.SKIP, "reviewers_file cannot be read", "see above")
    if not releasing:
        return line(ProbeStatus.WARN, "none in reviewers_file may release: what a person should review is halted",
                    "give one of them the action release")  # fmt: skip
    return line(ProbeStatus.OK, "a held answer waits for one of them")
