"""An agent that asks a model (SEED-5 §11): a bounded schema, a validator, a fallback to rules, and nothing that is ever executed.

The model is called through the sidecar, so the guard judges its answer, rationale included, against the snapshot and the signals.
What is left of the answer is a value of a Pydantic model; the proposals that are made of it name its window and its risk.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.client.answer import Answer
from interlock.client.core import State
from interlock.client.decision.model import DecisionProposal, ExperimentSnapshot, Signal
from interlock.client.errors import InterlockError, SafetyHalt
from interlock.client.session import Session

log = logging.getLogger("interlock.decision")

LONGEST_ANSWER, LONGEST_TEXT = 4_000, 1_000
RESERVE_S = 0.3
"""Kept of the time for an answer, so that the rules still speak in time."""
LEAST_S = 0.1


class ModelChoice(BaseModel):
    """What a model may say: derive from it, and give each further field a bound. Unknown fields and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    confidence: float = Field(ge=0, le=1)
    rationale: str = Field(min_length=1, max_length=LONGEST_TEXT)
    expected_effect: str = Field(max_length=LONGEST_TEXT)


C = TypeVar("C", bound=ModelChoice)


@dataclass(frozen=True)
class Advice(Generic[C]):
    """What came of asking a model. *choice*: absent where the rules speak, and *fault* says why.

    Faults: MODEL_HALTED, MODEL_REFUSED, MODEL_TIMED_OUT, MODEL_UNAVAILABLE, MODEL_ANSWER_TOO_LONG, MODEL_ANSWER_INVALID,
    MODEL_CONFIDENCE_INVALID, MODEL_CHOICE_UNUSABLE.
    """

    choice: C | None = None
    fault: str = ""
    window_id: str = ""
    risk: str = ""

    def marked(self, proposal: DecisionProposal) -> DecisionProposal:
        """Return a proposal with the window that it was made with."""
        return replace(proposal, window_id=self.window_id, model_risk=self.risk)


class ModelAdvisor:
    """Asks a model for a choice. Its calls are one session; OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL say where and whom."""

    def __init__(
        self,
        *,
        base_url: str = "",
        api_key: str = "",
        model: str = "",
        policy: str = "",
        longest: int = LONGEST_ANSWER,
    ) -> None:
        """*policy*: a stricter safety policy, such as halt-on HIGH. *longest*: characters of an answer that are read at all."""
        self._where: Mapping[str, Any] = {"base_url": base_url, "api_key": api_key, "model": model}
        self._longest = longest
        self._state = State({"CRP-Safety-Policy": policy} if policy else {}, retries=0)

    def proposals(
        self,
        question: str,
        schema: type[C],
        state: ExperimentSnapshot,
        signals: Sequence[Signal],
        *,
        made: Callable[[C], Iterable[DecisionProposal]],
        rules: Callable[[], Iterable[DecisionProposal]],
    ) -> list[DecisionProposal]:
        """Return the proposals that *made* makes of the model's choice; those of *rules* whenever there is none. Never raises for the model."""
        advice = self.ask(question, schema, state, signals)
        if advice.choice is not None:
            try:
                return [advice.marked(one) for one in made(advice.choice)]
            except Exception:
                log.exception("the model's choice cannot be used, the rules speak")
                advice = Advice(fault="MODEL_CHOICE_UNUSABLE")
        log.info("the rules speak: %s", advice.fault)
        return list(rules())

    def ask(self, question: str, schema: type[C], state: ExperimentSnapshot, signals: Sequence[Signal]) -> Advice[C]:
        """Ask, and return the choice or the fault. Takes no longer than the snapshot's deadline allows."""
        within_s = min(state.remaining_s, 120.0) - RESERVE_S
        if within_s < LEAST_S:
            return Advice(fault="MODEL_TIMED_OUT")
        try:
            with Session(**self._where, timeout_s=within_s) as session:
                session.state = self._state
                answer = session.chat(
                    question, facts=facts(state, signals), response_format=response_format(schema), temperature=0
                )
        except SafetyHalt:
            return Advice(fault="MODEL_HALTED")
        except InterlockError as error:
            return Advice(fault="MODEL_UNAVAILABLE" if error.status >= 500 else "MODEL_REFUSED")
        except httpx.TimeoutException:
            return Advice(fault="MODEL_TIMED_OUT")
        except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError):
            return Advice(fault="MODEL_UNAVAILABLE")
        return self._read(answer, schema)

    def _read(self, answer: Answer, schema: type[C]) -> Advice[C]:
        message = answer.completion["choices"][0]["message"]
        if message.get("refusal"):
            return Advice(fault="MODEL_REFUSED")
        if len(answer.text) > self._longest:
            return Advice(fault="MODEL_ANSWER_TOO_LONG")
        try:
            choice = schema.model_validate_json(answer.text)
        except ValidationError as error:
            wrong = {str(one["loc"][0]) for one in error.errors() if one["loc"]}
            return Advice(fault="MODEL_CONFIDENCE_INVALID" if wrong == {"confidence"} else "MODEL_ANSWER_INVALID")
        return Advice(choice, "", window_of(answer), answer.risk)


def response_format(schema: type[ModelChoice]) -> dict[str, Any]:
    """Return the structured output that is asked of the model."""
    told = {"name": schema.__name__, "strict": True, "schema": schema.model_json_schema()}
    return {"type": "json_schema", "json_schema": told}


def facts(state: ExperimentSnapshot, signals: Sequence[Signal]) -> list[dict[str, str]]:
    """Return what the model is given and its answer is judged against: the snapshot and the signals."""
    found = [{"id": "snapshot", "content": json.dumps(dict(state), default=_plain)}]
    for one in signals:
        told = {"type": one.type, "source": one.source, "confidence": one.confidence, "payload": one.payload}
        found.append({"id": one.id or one.type, "content": json.dumps(told, default=_plain)})
    return found


def window_of(answer: Answer) -> str:
    """Return the window id of a governed answer: the end of its report's address."""
    return answer.headers.get("crp-provenance-report-uri", "").rpartition("/")[2]


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)
