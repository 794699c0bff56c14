"""The agent of the demonstration: the real openai client, used as any agent would use it.

It sets the base URL, returns each answer's ``CRP-Set-Session`` token as ``CRP-Session-Token``, and reads headers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import openai
from google.protobuf import json_format

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.demo.provider import MODEL
from interlock.demo.recording import Turn

HALTED = 451


@dataclass(frozen=True)
class DemoWindow:
    """One governed call as the agent saw it."""

    number: int
    turn: Turn
    status: int
    headers: Mapping[str, str]
    answer: str | None
    """The released answer; ``None`` when the call was halted."""
    body: Mapping[str, Any] | None
    """The 451 body; ``None`` when the answer was released."""
    report: dpe_pb2.Report
    session: session_pb2.Session

    @property
    def budget_micros(self) -> int:
        """Budget of the session after the call."""
        return self.session.safety_budget_micros

    @property
    def breaker(self) -> str:
        """CLOSED, HALF_OPEN or OPEN, after the call."""
        return common_pb2.BreakerState.Name(self.session.breaker).removeprefix("BREAKER_STATE_")

    @property
    def risk(self) -> str:
        """LOW, MEDIUM, HIGH or CRITICAL."""
        return common_pb2.RiskLevel.Name(self.report.risk_level).removeprefix("RISK_LEVEL_")

    @property
    def remedied(self) -> bool:
        """Whether the released answer differs from the first answer of the model."""
        return self.answer is not None and self.answer != self.turn.answer

    @property
    def chain(self) -> str:
        """Verdict on the session's chain up to this window."""
        return self.headers.get("crp-provenance-chain-integrity", "")


class Agent:
    """Talks to a model through the mesh. Its key is its own; the provider's key stays with the mesh."""

    def __init__(self, base_url: str, grpc_address: str, *, api_key: str) -> None:
        self._openai = openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0, timeout=180)
        self._http = httpx.Client(headers={"Authorization": f"Bearer {api_key}"}, timeout=10, trust_env=False)
        self._channel = grpc.insecure_channel(grpc_address)
        self._sidecar = sidecar_pb2_grpc.SidecarServiceStub(self._channel)
        self._metadata = (("authorization", f"Bearer {api_key}"),)
        self._token = self._continuation = ""

    def converse(self, passage: str, turns: tuple[Turn, ...]) -> Iterator[DemoWindow]:
        """Ask the questions in turn about *passage*, as one session, until one is halted; yield each window as it ends."""
        messages: list[dict[str, str]] = [{"role": "system", "content": passage}]
        for number, turn in enumerate(turns, 1):
            messages.append({"role": "user", "content": turn.question})
            window = self._ask(number, turn, messages)
            yield window
            if window.answer is None:
                return
            messages.append({"role": "assistant", "content": window.answer})

    def ask_once_more(self, question: str) -> tuple[int, Mapping[str, Any]]:
        """Ask in the same session and return only status and body: for a session that accepts no more calls."""
        status, _, _, body = self._post([{"role": "user", "content": question}])
        return status, body or {}

    def _ask(self, number: int, turn: Turn, messages: list[dict[str, str]]) -> DemoWindow:
        status, headers, answer, body = self._post(messages)
        return DemoWindow(
            number=number, turn=turn, status=status, headers=headers, answer=answer, body=body,
            report=self._report(headers), session=self._session(),
        )  # fmt: skip

    def _post(
        self, messages: list[dict[str, str]]
    ) -> tuple[int, Mapping[str, str], str | None, Mapping[str, Any] | None]:
        own = {"CRP-Session-Token": self._token} if self._token else {}
        # Each summary goes on from the one before: what that said already, this one is not to say again.
        own |= {"CRP-Context-Continuation-Id": self._continuation} if self._continuation else {}
        conversation: Any = messages
        try:
            raw = self._openai.chat.completions.with_raw_response.create(
                model=MODEL, messages=conversation, extra_headers=own
            )
        except openai.APIStatusError as error:
            if error.status_code != HALTED:
                raise
            headers = self._remember(error.response.headers)
            return HALTED, headers, None, error.response.json()
        return raw.status_code, self._remember(raw.headers), raw.parse().choices[0].message.content, None

    def _remember(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Keep the token for the next call (SPEC-007 §2) and return the headers with lower-case names."""
        lower = {name.lower(): value for name, value in headers.items()}
        first = lower.get("crp-set-session", "").split(";")[0].strip()
        if first.startswith("token="):
            self._token = first.removeprefix("token=")
            self._continuation = lower.get("crp-context-continuation-id", "")
        return lower

    def _report(self, headers: Mapping[str, str]) -> dpe_pb2.Report:
        """Return the stored report of the call; an empty report if the call was refused before there was an answer."""
        if "crp-provenance-report-uri" not in headers:
            return dpe_pb2.Report()
        answer = self._http.get(headers["crp-provenance-report-uri"])
        answer.raise_for_status()
        return json_format.Parse(answer.content, dpe_pb2.Report())

    def _session(self) -> session_pb2.Session:
        request = sidecar_pb2.GetSessionRequest(session_token=self._token)
        return self._sidecar.GetSession(request, metadata=self._metadata, timeout=10).session

    def close(self) -> None:
        """Close every connection."""
        self._openai.close()
        self._http.close()
        self._channel.close()
