"""Probes of sign-in by OpenID Connect: that it is set up whole, that the provider is the one that was meant, and its clock."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from interlock.cli.probing.probes import broken, refusable
from interlock.domain.errors import Refused
from interlock.runtime.clock import system_clock
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.model import Settings

LIMIT_S = 3.0
MOST_APART_S = 30
"""How far the provider's clock may be off: half of what its ID tokens may be."""

_HINTS = {
    "OIDC_UNREACHABLE": "start it, or correct INTERLOCK_OIDC_ISSUER; a private authority goes into INTERLOCK_OIDC_CA_FILE",
    "OIDC_ANSWER_INVALID": "INTERLOCK_OIDC_ISSUER is the part before /.well-known/openid-configuration",
}


async def sign_in(settings: Settings) -> AsyncIterator[ProbeFinding]:
    """Check sign-in to the console by an OpenID provider."""
    from interlock.oversight.oidc.opening import client_of, load_roles
    from interlock.oversight.oidc.provider import Provider

    line = partial(ProbeFinding, "sign-in")
    if not settings.oidc_issuer or "oidc" not in settings.sign_in_ways.split(","):
        yield line("provider", ProbeStatus.SKIP, "no sign-in by OpenID Connect")
        return
    if (path := settings.oidc_roles_file) is None:
        hint = "a file that gives groups a role: docs/console.md"
        yield line("oidc_roles_file", ProbeStatus.FAIL, "not set: nobody has a role", hint)
    else:
        yield refusable(line, "oidc_roles_file", lambda: load_roles(path), str(path))
    if not settings.oversight_base_url:
        hint = "set INTERLOCK_OVERSIGHT_BASE_URL where others than this machine open the console"
        yield line("redirect URI", ProbeStatus.WARN, "of loopback: the provider sends nobody back from elsewhere", hint)
    try:
        client = replace(client_of(settings), timeout_s=min(LIMIT_S, settings.oidc_timeout_s))
        provider = Provider(client, system_clock)
        found = await provider.metadata()
        keys = await provider.keys()
    except Refused as refused:
        hint = refused.metadata.get("hint") or _HINTS.get(refused.reason, f"reason {refused.reason}")
        yield line("provider", ProbeStatus.FAIL, refused.message, hint)
        return
    except Exception as error:  # noqa: BLE001 - what is broken here is told by its type, and ends nothing else
        yield broken(line, "provider", error)
        return
    yield line("provider", ProbeStatus.OK, f"{client.issuer} answers, with {len(keys)} keys that sign")
    yield _clock(found.date_s)


def _clock(date_s: float | None) -> ProbeFinding:
    line = partial(ProbeFinding, "sign-in", "clock")
    if date_s is None:
        return line(ProbeStatus.SKIP, "the provider does not tell its time")
    apart_s = date_s - time.time()
    if abs(apart_s) > MOST_APART_S:
        hint = "set both by NTP: a token is refused where they are a minute apart (OIDC_CLOCK_OFF)"
        return line(ProbeStatus.FAIL, f"the provider's is {apart_s:+.0f} s apart from this one", hint)
    return line(ProbeStatus.OK, "the provider's agrees with this one")
