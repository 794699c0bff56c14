"""Everything that is done to a cluster on purpose. ``Cluster.heal`` undoes all of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from interlock.domain.errors import Refused
from interlock.runtime import failpoints
from tests.faults.parts.cluster import Cluster
from tests.faults.parts.processes import skewed
from tests.faults.parts.proxy import REPLICA, SENTINEL
from tests.faults.parts.servers import fill

Act = Callable[[Cluster], Awaitable[None]]

WATCHED_S = 8.0
"""How long a tritonserver is watched after a pause."""


@dataclass(frozen=True)
class Fault:
    """One way of breaking a cluster."""

    name: str
    act: Act

    async def __call__(self, cluster: Cluster) -> None:
        """Break it."""
        await self.act(cluster)


def _front_of(label: str) -> int | None:
    """Return the number of the sidecar that a label names, itself or the way to it."""
    name, _, number = label.rpartition("-")
    return int(number) if name in {"sidecar", "front"} else None


def _mark(cluster: Cluster, label: str) -> None:
    if (number := _front_of(label)) is not None:
        cluster.front_down(number)


def kill(*labels: str) -> Fault:
    """kill -9, all at the same moment; they stay dead until the healing."""

    async def act(cluster: Cluster) -> None:
        for label in labels:
            _mark(cluster, label)
            if cluster.parts[label].alive:
                cluster.parts[label].child.send_signal(signal.SIGKILL)
        await asyncio.gather(*(asyncio.to_thread(cluster.parts[label].child.wait) for label in labels))

    return Fault(f"kill {' '.join(labels)}", act)


def revive(label: str, down_s: float = 0.0) -> Fault:
    """kill -9 and start again at once."""

    async def act(cluster: Cluster) -> None:
        await kill(label)(cluster)
        await asyncio.sleep(down_s)
        await cluster.parts[label].up()

    return Fault(f"kill and start {label}", act)


def restart(label: str) -> Fault:
    """SIGTERM, wait for its end, start again: what a rolling update does."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, label)
        await _gone(cluster, label)
        await cluster.parts[label].up()

    return Fault(f"restart {label}", act)


def pause(label: str) -> Fault:
    """SIGSTOP."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, label)
        if cluster.parts[label].alive:
            cluster.parts[label].pause()

    return Fault(f"pause {label}", act)


def skew(label: str, seconds: int) -> Fault:
    """Start it again with a wall clock that is so far off."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, label)
        await _gone(cluster, label)
        await cluster.parts[label].up(**skewed(seconds))
        cluster.healers.append(lambda: _plainly(cluster, label))

    return Fault(f"skew {label} by {seconds:+d} s", act)


def failpoint(label: str, rule: str) -> Fault:
    """Start it again with a failpoint; what it kills stays dead until the healing."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, label)
        await _gone(cluster, label)
        try:
            await cluster.parts[label].up(INTERLOCK_FAILPOINTS=rule)
        except AssertionError:
            if cluster.parts[label].alive:  # else it met its end while it started
                raise
        cluster.healers.append(lambda: _plainly(cluster, label))

    return Fault(f"failpoint {rule} in {label}", act)


def inside(rule: str) -> Fault:
    """Set a failpoint in this process, where the mesh is this process; it may fail and delay, not kill."""

    async def act(cluster: Cluster) -> None:
        failpoints.configure(rule)

        async def off() -> None:
            failpoints.configure("")

        cluster.healers.append(off)

    return Fault(f"failpoint {rule}", act)


async def _gone(cluster: Cluster, label: str) -> None:
    """End a part with SIGTERM, whatever it does now; one that does not end is killed."""
    part = cluster.parts[label]
    if part.alive:
        if part.paused:
            part.resume()
        with contextlib.suppress(AssertionError):
            await part.down()


async def _plainly(cluster: Cluster, label: str) -> None:
    """Let a part live without what was put into its environment; the healing starts it."""
    await _gone(cluster, label)


def cut(line: str, *directions: str) -> Fault:
    """Swallow what goes over a line, one way or both ways."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, line)
        for one in cluster.lines_to(line):
            one.cut(*directions)

    return Fault(f"cut {line} {' and '.join(directions) or 'both ways'}", act)


def reset(line: str) -> Fault:
    """Break every connection of a line, and each new one."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, line)
        for one in cluster.lines_to(line):
            one.reset()

    return Fault(f"reset {line}", act)


def drop(line: str) -> Fault:
    """Break every connection of a line once."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, line)
        for one in cluster.lines_to(line):
            one.drop()

    return Fault(f"drop {line}", act)


def half_open(line: str) -> Fault:
    """Let one side of a line die and the other not know of it."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, line)
        for one in cluster.lines_to(line):
            one.half_open()

    return Fault(f"half-open {line}", act)


def slow(line: str, delay_s: float) -> Fault:
    """Delay everything on a line."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, line)
        for one in cluster.lines_to(line):
            one.slow(delay_s)

    return Fault(f"slow {line} by {delay_s:g} s", act)


def throttle(line: str, bytes_per_s: float) -> Fault:
    """Let little through a line."""

    async def act(cluster: Cluster) -> None:
        _mark(cluster, line)
        for one in cluster.lines_to(line):
            one.throttle(bytes_per_s)

    return Fault(f"throttle {line} to {bytes_per_s:g} bytes/s", act)


def rogue(*tricks: str) -> Fault:
    """Let the provider misbehave, request by request."""

    async def act(cluster: Cluster) -> None:
        cluster.provider.misbehave(tricks)

    return Fault(f"provider {' '.join(trick or 'good' for trick in tricks)}", act)


# The session store


def kill_store() -> Fault:
    """kill -9 of the Valkey; it comes back on its own data."""

    async def act(cluster: Cluster) -> None:
        if cluster.store.process is not None:
            await asyncio.to_thread(cluster.store.kill)
        cluster.healers.append(lambda: _store_up(cluster))

    return Fault("kill store", act)


async def _store_up(cluster: Cluster) -> None:
    if cluster.store.process is None:
        await asyncio.to_thread(cluster.store.start)


def pause_store() -> Fault:
    """SIGSTOP of the Valkey."""

    async def act(cluster: Cluster) -> None:
        if cluster.store.process is None:
            return
        cluster.store.signal(signal.SIGSTOP)

        async def resume() -> None:
            if cluster.store.process is not None:
                cluster.store.signal(signal.SIGCONT)

        cluster.healers.append(resume)

    return Fault("pause store", act)


def full_store() -> Fault:
    """No memory left for writes, under noeviction."""

    async def act(cluster: Cluster) -> None:
        await _config(cluster, "maxmemory", "1")

        async def room() -> None:
            await _config(cluster, "maxmemory", "0")

        cluster.healers.append(room)

    return Fault("store out of memory", act)


async def _config(cluster: Cluster, name: str, value: str) -> None:
    await _told(cluster, lambda client: client.config_set(name, value))


async def _told(cluster: Cluster, what: Callable[[Any], Any]) -> Any:
    """Tell the store something, past every line; one that is dead or stopped is told nothing."""

    def tell() -> Any:
        with redis.Redis(port=cluster.store.port, socket_timeout=1) as client, contextlib.suppress(redis.RedisError):
            return what(client)

    return await asyncio.to_thread(tell)


def flush_store() -> Fault:
    """Lose every session at once: FLUSHALL."""

    async def act(cluster: Cluster) -> None:
        await _told(cluster, lambda client: client.flushall())

    return Fault("flush store", act)


def evict(share: float = 0.5) -> Fault:
    """Lose some sessions, as an eviction would."""

    async def act(cluster: Cluster) -> None:
        def lose(client: Any) -> None:
            keys = sorted(client.keys("*:s:*"))
            for key in keys[: int(len(keys) * share) + 1]:
                client.delete(key)

        await _told(cluster, lose)

    return Fault(f"evict {share:.0%} of the sessions", act)


ALL_AT_ONCE = """
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  all[#all + 1] = key
  all[#all + 1] = redis.call('DUMP', key)
end
return all
"""
"""A copy of a store is of one moment: a settlement that lowers child and parent is in it whole or not at all."""


def roll_back_store() -> Fault:
    """Put back what every session was a moment ago: an old backup, a replica that was behind."""

    async def act(cluster: Cluster) -> None:
        old = await _told(cluster, _dumped)
        await asyncio.sleep(0.5)
        if old is None:
            return  # it was dead or stopped: there is no copy
        cluster.set_back_at = time.monotonic()

        def restore(client: Any) -> None:
            # In one step, and what is newer is gone: no older copy holds a child beside a parent that never heard of it.
            with client.pipeline(transaction=True) as pipe:
                pipe.flushdb()
                for key, value in old.items():
                    pipe.restore(key, 0, value)
                pipe.execute()

        await _told(cluster, restore)

    return Fault("roll the store back by half a second", act)


def _dumped(client: Any) -> dict[bytes, bytes]:
    found = client.eval(ALL_AT_ONCE, 0)
    return dict(zip(found[::2], found[1::2], strict=True))


def everything() -> Fault:
    """The whole host loses power: every process at once, the store and the database with it."""

    async def act(cluster: Cluster) -> None:
        for number in range(len(cluster.fronts)):
            cluster.front_down(number)
        living = [part for part in cluster.parts.values() if part.alive]
        for part in living:
            part.child.send_signal(signal.SIGKILL)
        if cluster.store.process is not None:
            await asyncio.to_thread(cluster.store.kill)
        cluster.healers.append(lambda: _store_up(cluster))
        if cluster.database is not None:
            await cluster.database.kill()
            cluster.healers.append(cluster.database.start)
        await asyncio.gather(*(asyncio.to_thread(part.child.wait) for part in living))

    return Fault("kill everything", act)


def together(name: str, faults: Sequence[Fault], gap_s: float = 0.0) -> Fault:
    """Do several, one after the other."""

    async def act(cluster: Cluster) -> None:
        for fault in faults:
            await fault(cluster)
            await asyncio.sleep(gap_s)

    return Fault(name, act)


def full_disk() -> Fault:
    """No byte is left on the disk of the audit log."""

    async def act(cluster: Cluster) -> None:
        assert cluster.disk is not None
        await asyncio.to_thread(fill, cluster.disk)
        filler = cluster.disk / "filler"

        async def clear() -> None:
            filler.unlink(missing_ok=True)

        cluster.healers.append(clear)

    return Fault("disk full", act)


def kill_primary() -> Fault:
    """kill -9 of the primary; the sentinels make a primary of the replica."""

    async def act(cluster: Cluster) -> None:
        await asyncio.to_thread(cluster.store.kill)
        cluster.healers.append(lambda: _store_up(cluster))
        await _failed_over(cluster)

    return Fault("kill primary", act)


async def _failed_over(cluster: Cluster) -> None:
    """Wait until the sentinels name the replica."""
    begun = time.monotonic()
    while await asyncio.to_thread(cluster.store.named) != cluster.store.replica.port:
        assert time.monotonic() < begun + 30, "the sentinels did not fail over"
        await asyncio.sleep(0.05)
    cluster.notes.append(f"failed over in {time.monotonic() - begun:.1f} s")


def fail_over_with_loss(apart_s: float = 1.0) -> Fault:
    """Cut the primary off from its replica and the sentinels while it continues to acknowledge writes, and wait for the failover.

    What it acknowledged meanwhile is nowhere else: the new primary does not have it.
    """

    async def act(cluster: Cluster) -> None:
        cluster.lines["store"].cut_off(REPLICA)
        await asyncio.sleep(apart_s)
        cluster.lines["store"].cut_off(REPLICA, SENTINEL)
        await _failed_over(cluster)
        lost = await asyncio.to_thread(cluster.store.lost)
        assert lost, "nothing was lost: the run shows nothing"
        cluster.notes.append(f"{lost} sessions of the old primary are older or not there on the new one")

    return Fault("fail over with lost writes", act)


# PostgreSQL and Triton


def kill_database() -> Fault:
    """kill -9 of PostgreSQL, all its processes."""

    async def act(cluster: Cluster) -> None:
        await cluster.database.kill()
        cluster.healers.append(cluster.database.start)

    return Fault("kill database", act)


def restart_database() -> Fault:
    """kill -9 of PostgreSQL, and start it again at once."""

    async def act(cluster: Cluster) -> None:
        await cluster.database.kill()
        await cluster.database.start()

    return Fault("restart database", act)


def pause_database() -> Fault:
    """SIGSTOP of PostgreSQL, all its processes."""

    async def act(cluster: Cluster) -> None:
        await cluster.database.pause()
        cluster.healers.append(cluster.database.resume)

    return Fault("pause database", act)


def kill_triton() -> Fault:
    """kill -9 of tritonserver and its interpreters."""

    async def act(cluster: Cluster) -> None:
        await asyncio.to_thread(cluster.triton.kill)

        async def start() -> None:
            await asyncio.to_thread(cluster.triton.start)

        cluster.healers.append(start)

    return Fault("kill triton", act)


def pause_triton() -> Fault:
    """SIGSTOP of tritonserver and its interpreters.

    Its Python backend may take an interpreter that was paused for dead, and serve that model no more, or crash with the first
    calls after the pause. Whoever watches over a real one restarts it then, and so does this.
    """

    async def act(cluster: Cluster) -> None:
        group = os.getpgid(cluster.triton.pid)
        os.killpg(group, signal.SIGSTOP)

        async def resume() -> None:
            os.killpg(group, signal.SIGCONT)
            end = time.monotonic() + WATCHED_S
            while time.monotonic() < end:
                if cluster.triton.pid is None or not await _infers(cluster.triton.address):
                    cluster.notes.append("Triton did not serve all models again after the pause; restarted")
                    await asyncio.to_thread(cluster.triton.kill)
                    await asyncio.to_thread(cluster.triton.start)
                    return
                await asyncio.sleep(0.5)

        cluster.healers.append(resume)

    return Fault("pause triton", act)


async def _infers(address: str, limit_s: float = 15.0) -> bool:
    """Tell whether every model answers within the limit."""
    from tests.support.servers.triton import client

    port, end = client(address, timeout_s=5.0), time.monotonic() + limit_s
    try:
        while time.monotonic() < end:
            with contextlib.suppress(Refused):
                await asyncio.gather(port.names(["Ada Lovelace"]), port.nli([("a", "b")]), port.embed(["a"]))
                return True
            await asyncio.sleep(0.2)
    finally:
        await asyncio.to_thread(port.close)
    return False
