"""Probes of the model provider: that it answers, takes our key, and takes no key that is made up."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from functools import partial

from interlock.cli.probing.probes import UPSTREAM_LIMIT_S
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.values import without_password


async def upstream(settings: Settings) -> AsyncIterator[ProbeFinding]:
    """Check the model provider: configured, reachable, and accepting our key."""
    import httpx

    from interlock.sidecar.provider.provider_api import APIS

    line = partial(ProbeFinding, "upstream", "provider")
    base = settings.upstream_base_url.rstrip("/")
    if not base:
        hint = "set INTERLOCK_UPSTREAM_BASE_URL; until then only Check works"
        yield line(ProbeStatus.WARN, "not configured", hint)
        return
    key = settings.upstream_api_key
    headers = APIS[settings.upstream_api]().headers(key.get_secret_value() if key else None)
    try:
        async with httpx.AsyncClient(timeout=UPSTREAM_LIMIT_S) as client:
            code = (await client.get(f"{base}/models", headers=headers)).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        hint = "start it, or correct INTERLOCK_UPSTREAM_BASE_URL; it usually ends in /v1"
        yield line(ProbeStatus.FAIL, f"{without_password(base)}: {type(error).__name__}", hint)
        return
    if key and code in {401, 403}:
        yield line(ProbeStatus.FAIL, f"it refuses our key with {code}", "correct INTERLOCK_UPSTREAM_API_KEY")
    elif code >= 500:
        yield line(ProbeStatus.FAIL, f"it answers {code}", "see the provider's own status")
    elif code == httpx.codes.NOT_FOUND:
        hint = "fine if it has no list of models; otherwise INTERLOCK_UPSTREAM_BASE_URL lacks its /v1"
        yield line(ProbeStatus.WARN, f"{without_password(base)}/models is not found", hint)
    else:
        yield line(ProbeStatus.OK, f"{without_password(base)} answers")
    if settings.caller_budget and not (key or settings.api_keys_file or settings.agents_file):
        yield await _keys_of_callers(settings, base)


async def _keys_of_callers(settings: Settings, base: str) -> ProbeFinding:
    """Check that the provider refuses a key that is made up: without a list here, a caller is a key that it takes.

    Some show their models to everybody, so that a question is asked too; it names no model and costs nothing.
    """
    import httpx

    from interlock.sidecar.provider.provider_api import APIS

    line, api = partial(ProbeFinding, "upstream", "keys"), APIS[settings.upstream_api]()
    headers = api.headers(f"made-up-{secrets.token_hex(16)}")
    try:
        async with httpx.AsyncClient(timeout=UPSTREAM_LIMIT_S, headers=headers) as client:
            codes = {
                (await client.get(base + api.models)).status_code,
                (await client.post(base + api.path, json={})).status_code,
            }
    except httpx.HTTPError as error:
        return line(ProbeStatus.SKIP, f"{type(error).__name__}: whether it refuses a key that is made up is not known")
    if codes & {401, 403} or not any(httpx.codes.is_success(code) for code in codes):
        return line(ProbeStatus.OK, "it serves no key that is made up")
    hint = (
        "list the keys: INTERLOCK_API_KEYS_FILE; or set INTERLOCK_UPSTREAM_API_KEY, then all callers share one budget"
    )
    return line(ProbeStatus.WARN, "it serves a key that is made up: whoever invents one has a budget of its own", hint)
