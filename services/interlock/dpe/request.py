"""The request of an analysis: the outputs of one dispatch and the evidence that they are checked against.

Every field is as the caller sent it; ``intake`` refuses what is out of bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.document import Fact

USER, INSTRUCTION, SOURCE, ANSWERED, RESULT = "user", "instruction", "source", "answered", "result"
SAID_KINDS = (USER, INSTRUCTION, SOURCE, ANSWERED)
OWN_KINDS = frozenset({USER, INSTRUCTION})


@dataclass(frozen=True)
class Output:
    """One text of a choice, and its kind."""

    choice_index: int
    text: str
    kind: str = "content"
    tool_name: str = ""


@dataclass(frozen=True)
class PriorWindow:
    """An earlier answer of the session, as released."""

    window_id: str
    text: str


@dataclass(frozen=True)
class MergedAnswer:
    """An answer that the analysed one was made from, and the sub-query that it was to answer."""

    source_id: str
    text: str
    label: str = ""
    sub_query: str = ""


@dataclass(frozen=True)
class LinkedResult:
    """The result of a sub-agent that the answer was made from. It is copied into the report."""

    session_id: str
    window_id: str
    hmac: str
    chain_tip: str
    agent_type: str = ""


@dataclass(frozen=True)
class ConsumedAnswer:
    """An earlier answer whose text is among the facts, as it was judged itself.

    ``attribution`` is the number of what most of its claims rested on, 0 for none; no ``grounding``: it was not measured.
    """

    window_id: str
    fact_ids: frozenset[str]
    score: float
    grounding: float | None
    attribution: int = 0


@dataclass(frozen=True)
class SaidText:
    """A text of the request that is no source of facts but shows what was asked for: see ``dpe.proto``."""

    id: str
    text: str
    kind: str


@dataclass(frozen=True)
class DeclaredTool:
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters_json: str = ""
    returns_answer: bool = False


@dataclass(frozen=True)
class Request:
    """The request of one analysis. A request without outputs is an empty answer: a finding, not an error."""

    outputs: tuple[Output, ...]
    facts: tuple[Fact, ...] = ()
    query: str = ""
    prompt: str = ""
    loop_depth: int = 0
    domain: str = ""
    prior: tuple[PriorWindow, ...] = ()
    flow_remediation: str = ""
    governed: bool = False
    merged: tuple[MergedAnswer, ...] = ()
    sub_queries: tuple[str, ...] = ()
    linked: tuple[LinkedResult, ...] = ()
    grounding_mode: GroundingMode = GroundingMode.AUTO
    grounding_required: bool = False
    said: tuple[SaidText, ...] = ()
    tools: tuple[DeclaredTool, ...] = ()
    earlier_facts: frozenset[str] = frozenset()
    """Ids of the facts that stood in the conversation before the user's last words."""
    consumed: tuple[ConsumedAnswer, ...] = ()

    @property
    def own_words(self) -> str:
        """The query, the user's words and the orders of the system: what an answer may name without a source."""
        return "\n".join([self.query, *(one.text for one in self.said if one.kind in OWN_KINDS)])
