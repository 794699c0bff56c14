"""Clients that do what agents do, and keep a history of everything that they asked and were told."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx

from interlock.api.audit.v1 import audit_pb2
from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.domain.errors import Refused
from interlock.runtime.rpc.errors import HTTP_CODES, from_rpc_error
from tests.faults import streams
from tests.faults.experiments import ExperimentOwner
from tests.faults.facts import (
    CHAT,
    DELEGATE,
    END,
    GRPC,
    HTTP,
    IN_PARTS,
    LOOK,
    MESSAGES,
    PARTS,
    PLAIN,
    RELEASED,
    RESPONSES,
    RPC_PARTS,
    STREAM,
    Call,
)  # fmt: skip
from tests.faults.kernels import KernelClient
from tests.faults.parts.cluster import Cluster
from tests.faults.verifier import token_in
from tests.support.sidecar.oversight import decision, token_for

RISKS = ("LOW", "LOW", "LOW", "MEDIUM", "MEDIUM", "HIGH", "CRITICAL")
ENDED = frozenset({
    "BUDGET_DEPLETED", "SESSION_TERMINATED", "MAX_WINDOWS_EXCEEDED", "MAX_DAG_NODES_EXCEEDED", "CHAIN_BROKEN",
    "SESSION_STATE_LOST", "SESSION_NOT_FOUND", "TOKEN_EXPIRED", "TOKEN_FROM_FUTURE", "ANCESTOR_ENDED",
    "ANCESTOR_EXHAUSTED", "ANCESTOR_HALTED",
})  # fmt: skip
"""Reasons after which a session is not gone on with."""

REPORTED_SHARE, TOLD_SHARE = 0.25, 0.5
CASES: Sequence[Callable[[str], str]] = (str.lower, str.lower, str.title, str.upper)
"""How the names of headers are written."""

WAYS = (HTTP, HTTP, STREAM, GRPC, PARTS, PARTS, RESPONSES, MESSAGES, RPC_PARTS)
STREAMED_WAYS = (PARTS, PARTS, RESPONSES, MESSAGES, RPC_PARTS)
"""Ways in of clients that ask for every answer in parts."""

NOTHING = {"crp-safety-policy-report-only": "halt-on MEDIUM"}
"""A policy that many an answer breaks, and that is only to be reported."""

REVIEW_S = 3.0
"""Patience of a reviewer with the audit service."""

WINDOWS_USED = "MAX_WINDOWS_EXCEEDED"
"""Says that a token is of the last window; older ones may still be branched from."""

STUCK = frozenset({"TOKEN_EXPIRED", "TOKEN_FROM_FUTURE"})
"""Reasons that say nothing of the session itself: its token is of another time."""


def key_of(name: str) -> str:
    """Return the API key of an agent; those below it have the same."""
    return f"key-of-{name.split('.', maxsplit=1)[0]}"


@dataclass
class History:
    """Everything that all clients of a run did."""

    calls: list[Call] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    agents: list[Agent] = field(default_factory=list)
    asked_in_parts: int = 0
    """Answers that were asked for in parts; each has a text of its own."""
    kernels: list[KernelClient] = field(default_factory=list)
    experiments: list[ExperimentOwner] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """Sessions about which nothing certain could be had, and what they answered last."""

    def note(self, **fields: Any) -> Call:
        """Keep a call."""
        call = Call(number=len(self.calls) + 1, **fields)
        self.calls.append(call)
        return call

    def outcomes(self, since: float = 0.0, until: float = float("inf")) -> dict[str, int]:
        """Return how often each outcome came of calls that began in that span."""
        found: dict[str, int] = {}
        for call in self.calls:
            if since <= call.started < until:
                name = "delivered" if call.status == RELEASED else (call.reason or str(call.status))
                found[name] = found.get(name, 0) + 1
        return found


@dataclass
class Agent:
    """One agent with a session of its own, and below it the agents that it has delegated to."""

    cluster: Cluster
    history: History
    name: str
    rng: random.Random
    place: int = 0
    parent: Agent | None = None
    token: str = ""
    session_id: str = ""
    first: dict[str, str] = field(default_factory=dict)
    """Headers of its first call: those of its delegation."""
    points: list[tuple[str, str]] = field(default_factory=list)
    """Tokens and pointers that it was given, the latest last."""
    ended: str = ""
    """Why its session is over."""
    bound: set[str] = field(default_factory=set)
    """Sessions that its calls without a token ended in."""
    ways: Sequence[str] = WAYS
    """Ways in that it takes."""

    def __post_init__(self) -> None:
        self.history.agents.append(self)
        # Drawn apart from what is done, so that a seed does the same however it goes in.
        self._manner = random.Random(f"{self.name} {hash(self.rng.getstate()[1])}")

    @property
    def client(self) -> str:
        """The client that it works for, with those below it; each has a key of its own."""
        return self.name.split(".", maxsplit=1)[0]

    @property
    def root(self) -> str:
        """Root session of its tree."""
        return self.parent.root if self.parent else self.session_id

    async def chat(
        self,
        risk: str = "LOW",
        *,
        token: str | None = None,
        pattern: str = "LINEAR",
        headers: Mapping[str, str] | None = None,
        leave_after_s: float | None = None,
        approval: str = "",
        entry: str = "",
    ) -> Call:
        """Ask for an answer of that risk, by any way in where none is named, in any of the manners that change nothing."""
        sent = self.token if token is None else token
        more = dict(headers or {})
        more |= {"crp-session-token": sent} if sent else self.first
        if pattern == "FAN_OUT":
            more["crp-context-strategy"] = "fan-out"
        if pattern == "BRANCH":
            more["crp-session-action"] = "branch"
        if approval:
            more["crp-oversight-token"] = approval
        if self._manner.random() < REPORTED_SHARE:
            more |= NOTHING
        entry = entry or self._manner.choice(self.ways)
        call = await self.ask(
            CHAT, "POST", streams.PATHS.get(entry, streams.PATHS[PARTS]), json=self._body(entry, risk), headers=more, token=sent,
            pattern=pattern, leave_after_s=leave_after_s, approval=approval, entry=entry,
        )  # fmt: skip
        if not approval:
            self._learn(call)
        return call

    def _body(self, entry: str, risk: str) -> dict[str, Any]:
        if entry in IN_PARTS:
            self.history.asked_in_parts += 1
            return streams.body_of(entry, streams.long_text(self.history.asked_in_parts, risk))
        return streams.body_of(PARTS if entry == STREAM else entry, risk)

    async def reviewed(self, held: Call) -> None:
        """Have two reviewers' decisions race for a held answer, and ask for it with both, one of them twice."""
        audit = self.cluster.audit_stub()
        try:
            asked = audit_pb2.GetHeldRequest(window_id=str(held.shown.get("window_id", "")), state_only=True)
            found = await audit.GetHeld(asked, timeout=REVIEW_S)
            if found.HasField("refusal"):
                return
            approvals = [token_for(found.item, number=self.rng.getrandbits(120)) for _ in range(2)]
            self.history.secrets.update(approvals)
            await asyncio.gather(*(audit.DecideHeld(decision(one), timeout=REVIEW_S) for one in approvals))
        except (grpc.aio.AioRpcError, Refused):
            return  # the audit log is what is broken
        entry = self._manner.choice((HTTP, GRPC)) if held.entry in {HTTP, GRPC} else held.entry
        await asyncio.gather(*(self.chat("LOW", approval=one, entry=entry) for one in (*approvals, approvals[0])))

    def _learn(self, call: Call) -> None:
        if found := token_in(call.headers):
            self.history.secrets.add(found)
            self.token = found
            self.points.append((found, call.headers.get("crp-context-continuation-id", "")))
        if call.session_id and not self.session_id and (self.token or self.parent):
            self.session_id = call.session_id
        elif call.session_id and not self.session_id:
            self.bound.add(call.session_id)  # its token comes with the end of its first answer, which never came
        if call.reason in ENDED:
            self.ended = call.reason

    async def fan(self, width: int) -> None:
        """Ask side by side from the window at hand, then for all of it together."""
        if not self.token:
            return
        token = self.token
        parts = await asyncio.gather(
            *(self.chat(self.rng.choice(RISKS[:6]), token=token, pattern="FAN_OUT") for _ in range(width))
        )
        pointers = [
            one.headers["crp-context-continuation-id"] for one in parts
            if one.status == RELEASED and "crp-context-continuation-id" in one.headers
        ]  # fmt: skip
        if len(pointers) >= 2:
            headers = {
                "crp-context-strategy": "fan-in", "crp-context-continuation-id": ", ".join(pointers),
                "crp-agent-fan-in-policy": "partial",
            }  # fmt: skip
            await self.chat("LOW", headers=headers, pattern="FAN_IN")

    async def race(self, width: int) -> None:
        """Ask several times at once with one token: at most one may win."""
        token = self.token
        if token:
            await asyncio.gather(*(self.chat(self.rng.choice(RISKS[:5]), token=token) for _ in range(width)))

    async def delegate(self) -> Agent | None:
        """Start a sub-agent, where the session may."""
        if not self.token:
            return None
        call = await self.ask(
            DELEGATE, "POST", "/crp/v3/delegations", json={}, headers={"crp-session-token": self.token},
            token=self.token,
        )  # fmt: skip
        if call.status != RELEASED:
            return None
        headers = {str(name): str(value) for name, value in dict(call.shown["headers"]).items()}  # type: ignore[call-overload]
        self.history.secrets.add(str(call.shown["grant"]))
        place = self.place + self.rng.randrange(2)
        return Agent(
            self.cluster, self.history, f"{self.name}.{call.number}", self.rng, place, self, first=headers, ways=self.ways
        )  # fmt: skip

    async def plain(self) -> None:
        """Ask twice as a program that knows nothing of CRP, under a name of its own that other keys use as well."""
        body: dict[str, Any] = {
            "model": "m",
            "messages": [{"role": "user", "content": f"Say: {self.rng.choice(RISKS)}"}],
        }
        named = {"x-session-id": f"chat-{self._manner.randrange(2)}"}
        for _ in range(2):
            call = await self.ask(
                PLAIN, "POST", "/v1/chat/completions", json=body, headers=named, token="", pattern="LINEAR"
            )
            self.bound |= {call.session_id} - {""}

    async def end_above(self) -> None:
        """End the session while a sub-agent works, which then asks for more."""
        child = await self.delegate()
        if child is None or not self.session_id:
            return
        await child.chat("LOW")
        headers = {"crp-session-token": self.token}
        ending = self.ask(END, "DELETE", f"/crp/v3/session/{self.session_id}", headers=headers, token=self.token)
        _, ended = await asyncio.gather(child.chat(self.rng.choice(RISKS)), ending)
        if ended.status == RELEASED:
            self.ended = "SESSION_TERMINATED"
        await child.chat("LOW")

    async def look(self) -> Call | None:
        """Look at the session."""
        if not (self.token and self.session_id):
            return None
        headers = {"crp-session-token": self.token}
        return await self.ask(LOOK, "GET", f"/crp/v3/session/{self.session_id}", headers=headers, token=self.token)

    async def ask(
        self,
        kind: str,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        token: str,
        pattern: str = "LINEAR",
        leave_after_s: float | None = None,
        approval: str = "",
        entry: str = HTTP,
        **more: Any,
    ) -> Call:
        """Send one request and note what came of it."""
        place = self.place % len(self.cluster.fronts)
        started, left, heard = time.monotonic(), False, streams.Heard()
        sent = {"authorization": f"Bearer {key_of(self.name)}", **headers}
        try:
            async with asyncio.timeout(leave_after_s):
                if entry in {GRPC, RPC_PARTS}:
                    listening = heard if entry == RPC_PARTS else None
                    outcome = await self._dispatch(self.cluster.rpc_fronts[place], sent, more["json"], listening)
                else:
                    written = {self._manner.choice(CASES)(name): value for name, value in sent.items()}
                    listening = heard if kind == CHAT and entry in IN_PARTS else None
                    outcome = await self._request(
                        kind, self.cluster.fronts[place], method, path, written, listening, more
                    )
        except TimeoutError:
            outcome, left = {"status": 0, "reason": "left", "headers": heard.headers}, True
        except httpx.HTTPError as error:
            outcome = {"status": 0, "reason": type(error).__name__, "headers": heard.headers}
        ended = time.monotonic()
        whole = self.cluster.front_was_whole(place, started, ended)
        return self.history.note(
            client=self.name, kind=kind, started=started, ended=ended, limit_s=self.cluster.limit_s, token=token,
            pattern=pattern, left=left, front_up=whole, approval=approval, entry=entry, heard=heard.text, **outcome,
        )  # fmt: skip

    async def _request(
        self, kind: str, front: httpx.AsyncClient, method: str, path: str, headers: Mapping[str, str],
        heard: streams.Heard | None, more: Mapping[str, Any],
    ) -> dict[str, Any]:  # fmt: skip
        """Ask over HTTP, and listen where the answer may leave in parts."""
        if heard is None:
            return _outcome(kind, await front.request(method, path, headers=headers, **more))
        async with front.stream(method, path, headers={**headers, **streams.FINAL}, **more) as response:
            if response.status_code == RELEASED:
                await heard.over_http(response)
                return heard.outcome()
            await response.aread()
            return _outcome(kind, response)

    async def _dispatch(
        self, address: str, sent: dict[str, str], body: Mapping[str, Any], heard: streams.Heard | None
    ) -> dict[str, Any]:
        """Ask over gRPC, on a connection of its own, the token in the message or in the metadata."""
        context = sidecar_pb2.CallContext()
        if "crp-session-token" in sent and self._manner.random() < TOLD_SHARE:
            context.session_token = sent.pop("crp-session-token")
        asked = sidecar_pb2.DispatchRequest(context=context, chat_request=json.dumps(body).encode())
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            metadata = tuple((name.lower(), value) for name, value in sent.items())
            stub = sidecar_pb2_grpc.SidecarServiceStub(channel)  # type: ignore[no-untyped-call]
            try:
                if heard is None:
                    said = await stub.Dispatch(asked, metadata=metadata, timeout=self.cluster.limit_s + 5)
                else:
                    streamed = sidecar_pb2.DispatchStreamRequest(dispatch=asked)
                    said = await heard.over_rpc(
                        stub.DispatchStream(streamed, metadata=metadata, timeout=self.cluster.limit_s + 5)
                    )
            except grpc.aio.AioRpcError as error:
                refused = _refusal(error)
                known = heard.headers if heard else {}
                return {**refused, "headers": {**known, **refused.get("headers", {})}}
        headers = {name.lower(): value for name, value in said.outcome.headers.items()}
        return {"status": RELEASED, "headers": headers, "body_hash": _hash(said.chat_response)}

    async def step(self) -> None:
        """Do one of the things that agents do."""
        chance = self.rng.random()
        if chance < 0.45:
            call = await self.chat(self.rng.choice(RISKS))
            if call.reason == "HELD_FOR_REVIEW":
                await self.reviewed(call)
        elif chance < 0.55:
            await self.look()
        elif chance < 0.65:
            await self.race(self.rng.randint(2, 4))
        elif chance < 0.75:
            await self.fan(self.rng.randint(2, 4))
        elif chance < 0.85 and (child := await self.delegate()):
            for _ in range(self.rng.randint(1, 3)):
                await child.chat(self.rng.choice(RISKS))
        elif chance < 0.90 and len(self.points) > 1:
            await self.chat("LOW", token=self.rng.choice(self.points[:-1])[0])  # a token that is used up
        elif chance < 0.92:
            await self.plain()
        elif chance < 0.95:
            await self.chat(self.rng.choice(RISKS), leave_after_s=self.rng.choice((0.01, 0.05, 0.3)))
        elif chance < 0.98:
            await self.end_above()
        else:
            await self.chat("MEDIUM", headers={"crp-agent-safety-budget": "1.0"})  # what a client says lifts nothing

    async def walk(self, steps: int, pause_s: float = 0.0) -> None:
        """Do so many steps, unless the session is over before."""
        self.place += self.rng.randrange(2)
        for _ in range(steps):
            if self.ended:
                return
            await self.step()
            self.place += self.rng.randrange(2)
            await asyncio.sleep(pause_s)

    async def finish(self, limit_s: float, mended: float = float("inf")) -> bool:
        """Go on until nothing of the session is in doubt, when all is whole again; ``False`` when that cannot be had.

        A window whose outcome was never reported is settled by the first call after its lease has run out.
        """
        await asyncio.sleep(max(0.0, self._doubtful_until(mended) - time.monotonic()))
        deadline, refused, fresh = time.monotonic() + limit_s, 0, ""
        ways: list[str] = []
        used: set[str] = set()
        if self.session_id and self.token and self.ended and self.ended not in STUCK:
            await self.chat("LOW")  # what is over stays over, whatever the store has lost meanwhile
            self.ended = "" if self.ended == WINDOWS_USED else self.ended
        while self.session_id and not self.ended:
            # A window that was continued is gone on from by a branch, and any of them will do.
            open_points = [token for token, pointer in reversed(self.points) if pointer and token not in used]
            pointed = open_points or [self.token]
            token, pattern = pointed[refused // 2 % len(pointed)], ("LINEAR", "BRANCH")[refused % 2]
            if fresh:  # of a window that was settled without us: it may have been the last, and then it points nowhere
                token, pattern = fresh, "LINEAR"
            call = await self.chat("LOW", token=token, pattern=pattern)
            fresh = self.token if call.reason == "WINDOW_ALREADY_SETTLED" and token_in(call.headers) else ""
            if call.status in {RELEASED, 451}:
                return True
            if call.reason == WINDOWS_USED and token not in used:
                self.ended = ""
                used.add(token)
                continue
            if call.reason == "TOKEN_REPLAYED" and not any(pointer for _, pointer in self.points):
                return True  # its first window was settled, and no client has the token to continue
            ways.append(call.reason)
            tried = ways[-2 * len(pointed) :]
            if len(tried) == 2 * len(pointed) and set(tried) == {"TOKEN_REPLAYED", "MAX_FAN_OUT_EXCEEDED"}:
                return True  # all that could come after what it was told of is settled, and its answers were lost
            if time.monotonic() > deadline:
                self.history.doubts.append(f"{self.session_id}: {call.status} {call.reason}")
                return False
            refused += 400 <= call.status < 500 and call.reason not in {"WINDOW_IN_FLIGHT", "WINDOW_ALREADY_SETTLED"}
            await asyncio.sleep(0.3 if call.reason == "WINDOW_IN_FLIGHT" or call.status >= 500 else 0.02)
        return True

    def _doubtful_until(self, mended: float) -> float:
        """Return when the last lease has run out that may be left of calls that ended without a verdict.

        A client that hangs up on a whole mesh leaves nothing behind: its call continues without it.
        """
        ends = [
            call.ended for call in self.history.calls
            if call.kind == CHAT and call.client == self.name and _in_doubt(call) and not (call.left and call.started > mended)
        ]  # fmt: skip
        return max(ends) + self.cluster.lease_s + 0.3 if ends else 0.0


def _in_doubt(call: Call) -> bool:
    """Tell whether a window may have been sealed while it is unknown whether it was settled."""
    opened = "crp-context-window" in call.headers
    if call.approval:
        return False  # a release is no window
    return call.status == 0 or (call.status >= 500 and opened and not call.reason.startswith("UPSTREAM"))


def _refusal(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    """Return what a status says, in the numbers of HTTP; one without our details is a connection that broke."""
    if not any(name == "grpc-status-details-bin" for name, _ in error.trailing_metadata() or ()):
        return {"status": 0, "reason": f"rpc {error.code().name}"}
    refused = from_rpc_error(error, "sidecar")
    headers = {str(name): str(value) for name, value in error.trailing_metadata() or () if str(name).startswith("crp-")}
    status = HTTP_CODES[refused.kind]
    return {"status": status, "reason": refused.reason, "headers": headers, "shown": refused.metadata}


def _hash(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()


def _outcome(kind: str, response: httpx.Response) -> dict[str, Any]:
    """Return what an answer says, as a call keeps it."""
    headers = {name: value for name, value in response.headers.items() if name.startswith("crp-")}
    found: dict[str, Any] = {"status": response.status_code, "headers": headers}
    if response.status_code == RELEASED:
        found["body_hash"] = _hash(response.content)
    shown = _json(response)
    if response.status_code != RELEASED:
        found |= {"reason": str(shown.get("reason", "")), "shown": shown.get("metadata") or {}}
    elif kind in {LOOK, END}:
        found["budget"] = int(shown["safety_budget_micros"])
        headers.setdefault("crp-context-session-id", str(shown["session_id"]))
    elif kind == DELEGATE:
        found["shown"] = shown
    return found


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        shown = response.json()
    except ValueError:
        return {}
    return shown if isinstance(shown, dict) else {}


Script = Callable[[], Awaitable[None]]


async def traffic(history: History, cluster: Cluster, rng: random.Random, *, agents: int, steps: int) -> None:
    """Let so many agents walk at once."""
    made = [
        Agent(cluster, history, f"a{len(history.agents) + n}", random.Random(rng.random()), n) for n in range(agents)
    ]
    await asyncio.gather(*(agent.walk(steps) for agent in made))
