"""A TCP line that can be slowed, throttled, cut one way or both ways, reset, or left half open, and mended again.

A pause of a process loses nothing: the kernel keeps what is sent and delivers it on resume. To lose what was sent, a line has
to swallow bytes; a connection that has swallowed some is never used again, it breaks when the line is mended.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

TO, BACK = "to", "back"
"""Directions, as the client sees them."""

CHUNK = 65_536

REPLICA, SENTINEL = "replica", "sentinel"
_MARKS = {b"REPLCONF": REPLICA, b"PSYNC": REPLICA, b"sentinel-": SENTINEL, b"__sentinel__": SENTINEL}
"""What only a replica or a sentinel says."""


@dataclass
class State:
    """What the line does now."""

    delay_s: float = 0.0
    bytes_per_s: float = 0.0
    """0: as fast as it can."""
    swallow: frozenset[str] = frozenset()
    """Directions whose bytes vanish."""
    kinds: frozenset[str] = frozenset()
    """Only bytes of these kinds of connections vanish; empty: of all."""
    refuse: bool = False
    """Whether connections are reset as they come."""


@dataclass(eq=False)
class _Pair:
    """One connection through the line: the client's side, and the server's where it was reached."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    lost: bool = False
    """Whether bytes of it have vanished."""
    kind: str = ""
    """REPLICA or SENTINEL by what it has said; else empty."""

    def hear(self, data: bytes) -> None:
        """Learn who is at the client's end of a line to a Redis or Valkey."""
        for mark, kind in _MARKS.items():
            if not self.kind and mark in data:
                self.kind = kind

    def abort(self) -> None:
        for writer in (self.client, self.server):
            if writer is not None:
                writer.transport.abort()


@dataclass
class FaultProxy:
    """A line to ``host:port``. It listens on a port of its own, which it keeps."""

    port_to: int
    host: str = "127.0.0.1"
    state: State = field(default_factory=State)
    connections: int = 0

    def __post_init__(self) -> None:
        self._pairs: set[_Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @property
    def port(self) -> int:
        """Port on which the line begins."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """Where the line begins."""
        return f"127.0.0.1:{self.port}"

    async def start(self) -> FaultProxy:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def stop(self) -> None:
        """Break everything and listen no more."""
        self._server.close()
        self._break(self._pairs)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def slow(self, delay_s: float) -> None:
        """Let every piece arrive so much later, both ways."""
        self._set(State(delay_s=delay_s))

    def throttle(self, bytes_per_s: float) -> None:
        """Let no more than so many bytes through, each way."""
        self._set(State(bytes_per_s=bytes_per_s))

    def cut(self, *directions: str) -> None:
        """Swallow the bytes of these directions, or of both when none is named. Neither side is told."""
        self._set(State(swallow=frozenset(directions or (TO, BACK))))

    def cut_off(self, *kinds: str) -> None:
        """Swallow both ways what connections of these kinds carry; the others notice nothing."""
        self._set(State(swallow=frozenset({TO, BACK}), kinds=frozenset(kinds)))

    def reset(self) -> None:
        """Break every connection, and each new one as it comes."""
        self._set(State(refuse=True))
        self._break(self._pairs)

    def drop(self) -> None:
        """Break every connection once; new ones are good."""
        self._break(self._pairs)

    def half_open(self) -> None:
        """Break the server's side of every connection and let the client believe that its own still stands."""
        for pair in list(self._pairs):
            pair.lost = True
            if pair.server is not None:
                pair.server.transport.abort()
        self._set(State(swallow=frozenset({TO, BACK})))

    def mend(self) -> None:
        """Be a good line again; connections that have lost something break."""
        self._set(State())
        self._break({pair for pair in self._pairs if pair.lost})

    def _set(self, state: State) -> None:
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()

    def _break(self, pairs: set[_Pair]) -> None:
        for pair in list(pairs):
            pair.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self.connections += 1
        pair = _Pair(writer)
        self._pairs.add(pair)
        try:
            await self._serve(pair, reader)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            pair.abort()
            self._pairs.discard(pair)
            self._tasks.discard(task)

    async def _serve(self, pair: _Pair, reader: asyncio.StreamReader) -> None:
        if self.state.refuse:
            return
        while self.state.swallow and not self.state.kinds:
            # The kernel has accepted, and no server is connected. What was sent meanwhile counts as lost.
            pair.lost = True
            await self._changed.wait()
        if pair.lost:
            return
        server_reader, pair.server = await asyncio.open_connection(self.host, self.port_to)
        ways = [
            asyncio.create_task(self._pass(pair, reader, pair.server, TO)),
            asyncio.create_task(self._pass(pair, server_reader, pair.client, BACK)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            # One side has ended: give the other its last bytes, unless the line is to hide it.
            while pair.lost and self.state.swallow:
                await self._changed.wait()
            await asyncio.wait(ways, timeout=0.05)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(
        self, pair: _Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                if direction == TO:
                    pair.hear(data)
                state = self.state
                if self._vanishes(pair, direction) or pair.lost:
                    pair.lost = True
                    continue
                if state.delay_s:
                    await asyncio.sleep(state.delay_s)
                if state.bytes_per_s:
                    await asyncio.sleep(len(data) / state.bytes_per_s)
                if self._vanishes(pair, direction):  # cut while it was on its way
                    pair.lost = True
                    continue
                writer.write(data)
                await writer.drain()

    def _vanishes(self, pair: _Pair, direction: str) -> bool:
        state = self.state
        return direction in state.swallow and (not state.kinds or pair.kind in state.kinds)
