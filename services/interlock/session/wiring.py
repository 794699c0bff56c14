"""The session service as one value, made from the settings."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.domain.errors import unavailable
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from interlock.session.counting import OpenSessions
from interlock.session.ledger import Ledger
from interlock.session.servicer import SessionServicer
from interlock.session.store.batcher import TIMEOUT_S, Batcher
from interlock.session.store.clock import StoreClock
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore, Store
from interlock.session.terms import rules_of

FULL_NAME = session_pb2.DESCRIPTOR.services_by_name["SessionService"].full_name


async def open_service(settings: Settings) -> Service:
    """Return the service; the store need not be there yet.

    Refused with REDIS_URL_MISSING, REDIS_URL_INVALID, DECREMENT_OUT_OF_RANGE or for a weak master key. An embedded Valkey
    is started by the process that runs the service, which puts its URL into the settings.
    """
    rules = rules_of(settings)
    keyring = load_keyring(settings)
    store = open_store(settings)
    clock = StoreClock(store.now_us) if isinstance(store, RedisStore) else None
    ledger = Ledger(store, keyring, rules, clock=clock or system_clock, entropy=secrets.token_bytes)

    counting = OpenSessions(store.census)

    async def close() -> None:
        await counting.close()
        await ledger.close()

    async def unready_dependencies() -> Mapping[str, str]:
        if clock is not None:
            await clock.follow()
        return await store.unready_dependencies()

    return Service(
        name="session",
        full_names=(FULL_NAME,),
        servicer=SessionServicer(ledger),
        register=session_pb2_grpc.add_SessionServiceServicer_to_server,
        unready_dependencies=unready_dependencies,
        close=close,
    )


def open_store(settings: Settings) -> Store:
    """Return the store that the settings name. Nothing is connected yet."""
    if not settings.redis_url:
        raise unavailable("REDIS_URL_MISSING", "redis_url is not set and no embedded Valkey runs", retry_after_ms=0)
    if settings.redis_url.startswith("memory://"):
        return MemoryStore()
    batcher = Batcher(
        parse(settings.redis_url),
        timeout_s=min(TIMEOUT_S, settings.rpc_timeout_s),
        allow_unfit=settings.allow_unfit_store,
        wait_replicas=settings.redis_wait_replicas,
    )
    return RedisStore(batcher, token_lifetime_s=settings.token_lifetime_s)
