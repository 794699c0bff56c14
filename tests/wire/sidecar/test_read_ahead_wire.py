"""Earlier answers that are read while a window is opened, where every service is another process's (ATT-4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.audit.servicer import AuditServicer
from interlock.domain.errors import conflict
from interlock.runtime.rpc.errors import to_message
from interlock.session.servicer import SessionServicer
from interlock.sidecar.call.ahead import ReadAhead
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.bent import Bent, bent_sidecar
from tests.support.sidecar.sidecar import reason_of, token_of

pytestmark = pytest.mark.req("ATT-4")

LIMITS = {"rpc_timeout_s": 60, "request_timeout_s": 120}
"""So long that nothing ends here because its time is over."""


@dataclass
class Watched:
    """A sidecar over a network, and what its log is asked for."""

    bent: Bent
    provider: Provider
    read: list[list[str]] = field(default_factory=list)
    """Windows of each reading."""
    reading: asyncio.Event = field(default_factory=asyncio.Event)
    before_opening: Any = None
    """What the session service waits for before it opens a window."""
    held: asyncio.Event | None = None
    """What each reading waits for."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nobody waits for a reading any more."""
    broken: bool = False
    """Whether the log says that the chain does not verify."""

    async def chat(self, answer: str, after: httpx.Response | None = None, **headers: str) -> httpx.Response:
        self.provider.answers(answer)
        body = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}
        sent = headers if after is None else {**headers, "crp-session-token": token_of(after)}
        return await self.bent.client.post("/v1/chat/completions", json=body, headers=sent)

    def compared(self) -> list[list[str]]:
        """The texts that each analysis compared its answer with."""
        return [[one.text for one in asked.prior] for asked in self.bent.services["dpe"].servicer.asked]


@pytest.fixture
async def far(tmp_path, monkeypatch):
    opened, contents, provider = SessionServicer.OpenWindow, AuditServicer.GetContents, Provider()

    async def open_window(self, request, context):
        if watched.before_opening is not None:
            await watched.before_opening()
        return await opened(self, request, context)

    async def get_contents(self, request, context):
        watched.read.append(list(request.window_ids))
        watched.reading.set()
        if watched.held is not None:
            try:
                await watched.held.wait()
            except asyncio.CancelledError:
                watched.left.set()
                raise
        if watched.broken:
            broken = conflict("CHAIN_BROKEN", "the chain does not verify")
            return audit_pb2.GetContentsResponse(refusal=to_message(broken))
        return await contents(self, request, context)

    monkeypatch.setattr(SessionServicer, "OpenWindow", open_window)
    monkeypatch.setattr(AuditServicer, "GetContents", get_contents)
    with RunningProvider(provider) as served:
        async with bent_sidecar(tmp_path, served.base_url, compared_windows=2, **LIMITS) as bent:
            watched = Watched(bent, provider)
            yield watched


async def test_each_window_is_compared_with_the_ones_before_it(far):
    """They are read once for each window, and are the texts that are compared without reading ahead."""
    last = None
    for number in range(4):
        last = await far.chat(f"Answer {number}.", last)

    assert far.compared() == [[], ["Answer 0."], ["Answer 0.", "Answer 1."], ["Answer 1.", "Answer 2."]]
    assert [len(one) for one in far.read] == [1, 2, 2]


async def test_the_log_is_asked_before_the_window_is_open(far):
    """A session service that opens only once the log was asked is not waited for in vain."""
    first = await far.chat("First.")
    far.before_opening = far.reading.wait
    second = await far.chat("Second.", first)

    assert second.status_code == 200, second.text
    assert far.compared()[-1] == ["First."]


async def test_a_branch_is_compared_with_its_own_path(far):
    """Two windows may follow one token; what was read for the one is not what the other is compared with."""
    root = await far.chat("Root.")
    await far.chat("Linear.", root)
    branched = await far.chat("Branch.", root, **{"crp-session-action": "branch"})
    await far.chat("Below.", branched)

    assert branched.status_code == 200, branched.text
    assert far.compared() == [[], ["Root."], ["Root."], ["Root.", "Branch."]]


async def test_a_guess_that_does_not_fit_is_dropped(far, monkeypatch):
    """What the opened window says decides: its path is read, and nothing of another one is used."""
    first = await far.chat("First.")
    expect, other = ReadAhead.expect, session_pb2.OpenedWindow()

    def mistaken(self, scope, token, settled):
        other.CopyFrom(settled)
        other.window_id = settled.lineage[0]
        expect(self, scope, token, other)

    monkeypatch.setattr(ReadAhead, "expect", mistaken)
    second = await far.chat("Second.", first)
    third = await far.chat("Third.", second)

    assert third.status_code == 200, third.text
    assert far.compared()[-1] == ["First.", "Second."]
    assert [len(one) for one in far.read] == [1, 2, 2]
    assert far.read[1] != far.read[2]


async def test_a_token_that_is_presented_again_is_read_for_once(far):
    """A replay costs the log nothing: it is refused where windows are opened."""
    first = await far.chat("First.")
    await far.chat("Second.", first)
    replayed = await far.chat("Third.", first)

    assert replayed.status_code == 409
    assert len(far.read) == 1


async def test_a_call_whose_window_is_refused_leaves_no_reading_behind(far):
    """The log is told that nobody waits for it any more."""
    first = await far.chat("First.")
    far.held = asyncio.Event()

    async def refuse():
        await far.reading.wait()
        raise LookupError("no window is opened")

    far.before_opening = refuse
    refused = await far.chat("Second.", first)
    async with asyncio.timeout(5):
        await far.left.wait()

    assert refused.status_code >= 500


async def test_a_chain_that_does_not_verify_refuses_the_call_before_the_provider_is_asked(far):
    """As where it is read after the opening; the lease is given back."""
    first = await far.chat("First.")
    far.broken, asked = True, len(far.provider.received)
    refused = await far.chat("Second.", first)
    far.broken = False
    again = await far.chat("Second.", first)

    assert (reason_of(refused), refused.status_code) == ("CHAIN_BROKEN", 409)
    assert len(far.provider.received) == asked + 1
    assert again.status_code == 200, again.text
