"""The master that Sentinel names: found when a connection is made, checked by its role, looked up again every second.

Only a server that reports itself as the master is used. One that sentinels no longer name is left at once: a
master that was cut off from its replicas would acknowledge settlements that the new one never hears of. What such a failover
loses is in the audit log; the new master has another epoch, so each session is verified there first (docs/adr/0012).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import structlog

from interlock.domain.errors import Refused
from interlock.session.store.connection import Address, Connection, Sentinels, connect, store_unavailable
from interlock.session.store.fitness import learn

ASK_TIMEOUT_S = 0.5
LOOK_EVERY_S = 1.0

log = structlog.get_logger()


async def connect_master(address: Address, *, timeout_s: float) -> tuple[Connection, tuple[str, int]]:
    """Return a connection to the master and where it is, or refuse with SESSION_STORE_UNAVAILABLE within *timeout_s*."""
    assert address.sentinels
    try:
        async with asyncio.timeout(timeout_s):
            place = await master_of(address.sentinels, address)
            if place is None:
                raise store_unavailable("MASTER_UNKNOWN")
            connection = await connect(
                replace(address, host=place[0], port=place[1], sentinels=None), timeout_s=timeout_s
            )
            try:
                connection.chosen, connection.server = True, await learn(connection)
            except BaseException:
                connection.abort("CONNECT_FAILED")
                raise
    except TimeoutError:
        raise store_unavailable("CONNECT_TIMEOUT") from None
    if not connection.server.master:
        connection.abort("NOT_MASTER")
        raise store_unavailable("NOT_MASTER")
    log.info("store.master_found", host=place[0], port=place[1], epoch=connection.server.epoch)
    return connection, place


async def master_of(sentinels: Sentinels, address: Address) -> tuple[str, int] | None:
    """Return the master's address from the first sentinel that answers; ``None`` when none does."""
    for host, port in sentinels.places:
        try:
            return await _asked(sentinels, replace(
                address, host=host, port=port, db=0, username="", password=sentinels.password, sentinels=None
            ))  # fmt: skip
        except Refused as refused:
            log.info(
                "store.sentinel_silent", host=host, port=port, reason=refused.metadata.get("error", refused.reason)
            )
    return None


async def _asked(sentinels: Sentinels, address: Address) -> tuple[str, int]:
    connection = await connect(address, timeout_s=ASK_TIMEOUT_S)
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            told: Any = await connection.send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinels.master)
        return told[0].decode(), int(told[1])
    except TimeoutError:
        raise store_unavailable("TIMEOUT") from None
    except (TypeError, ValueError, IndexError, AttributeError):
        raise store_unavailable("MASTER_UNKNOWN") from None
    finally:
        connection.abort("CLOSED")


async def follow(address: Address, connection: Connection, place: tuple[str, int]) -> None:
    """Give *connection* up as soon as sentinels name another master than the one at *place*."""
    assert address.sentinels
    while not connection.closed:
        await asyncio.sleep(LOOK_EVERY_S)
        named = await master_of(address.sentinels, address)
        if named not in {None, place}:
            log.warning("store.master_moved", host=place[0], port=place[1])
            connection.abort("CONNECTION_LOST")
