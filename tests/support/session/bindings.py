"""A caller that brings no token: what it says, as the sidecar would hand it on, and the conversations that it has."""

from __future__ import annotations

import hashlib
from typing import Any

from interlock.api.session.v1 import session_pb2 as pb
from tests.support.session.session_client import POLICY, SCOPE, Client, settling, sha

RANKS = {
    "hint": pb.BINDING_RANK_HINT,
    "cookie": pb.BINDING_RANK_COOKIE,
    "response": pb.BINDING_RANK_RESPONSE,
    "trace": pb.BINDING_RANK_TRACE,
    "body": pb.BINDING_RANK_BODY,
}
BEGINNING = {"hint", "body"}


def digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]


def name(kind: str, value: str, scope: str = SCOPE) -> pb.BoundName:
    return pb.BoundName(rank=RANKS[kind], digest=digest(scope, kind, value), begins=kind in BEGINNING)


def names(scope: str = SCOPE, **given: str) -> list[pb.BoundName]:
    return [name(kind, value, scope) for kind, value in given.items()]


def turn(text: str, scope: str = SCOPE) -> pb.BoundTurn:
    """Return the turn of an answer; a short one is weak."""
    return pb.BoundTurn(digest=digest(scope, "turn", text), weak=len(text) < 8)


def speaking(*history: str, scope: str = SCOPE, **given: str) -> pb.OpenWindowRequest:
    """Return what a call asks that carries these earlier answers and names."""
    evidence = pb.BindingEvidence(names=names(scope, **given), turns=[turn(text, scope) for text in history])
    return pb.OpenWindowRequest(scope=scope, lease_ms=30_000, evidence=evidence)


class Talker:
    """Talks as the sidecar does for a caller without a token: it asks for the bound window, and begins where there is none."""

    def __init__(self, client: Client, scope: str = SCOPE) -> None:
        self.client, self.scope = client, scope

    async def open(self, *history: str, **given: str) -> pb.OpenedWindow:
        request = speaking(*history, scope=self.scope, **given)
        return (await self.client.call("OpenWindow", request)).window

    async def refused(self, *history: str, **given: str) -> Any:
        return await self.client.refused("OpenWindow", speaking(*history, scope=self.scope, **given))

    async def begin(self, **given: str) -> pb.OpenedWindow:
        started = await self.client.call(
            "StartSession",
            pb.StartSessionRequest(
                scope=self.scope,
                policy_text=POLICY,
                policy_hash=sha(POLICY),
                names=names(self.scope, **given),
                first_window=pb.OpenWindowRequest(lease_ms=30_000),
            ),
        )
        return started.first_window.window

    async def settle(self, window: pb.OpenedWindow, answer: str, cost: int = 0, **given: str) -> pb.OpenedWindow:
        """Settle a window whose *answer* was given; an empty one never left."""
        asked = settling(window, charge_micros=cost)
        asked.bound_names.extend(names(self.scope, **given))
        asked.ancestor_session_ids.extend(window.ancestor_session_ids)
        asked.pattern = window.pattern
        if answer:
            asked.turn.CopyFrom(turn(answer, self.scope))
        await self.client.call("CommitWindow", asked)
        return window

    async def conversation(self, *answers: str, **given: str) -> list[pb.OpenedWindow]:
        """Begin a session and give these answers in it, each time with all earlier ones."""
        windows = []
        for at, answer in enumerate(answers):
            window = await self.open(*answers[:at], **given) if at else await self.begin(**given)
            windows.append(await self.settle(window, answer))
        return windows
