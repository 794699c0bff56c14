"""What comes in: one dispatch's outputs with their evidence, held against the bounds of an analysis."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.errors import exhausted, invalid
from interlock.domain.regulatory import DOMAINS, canonical_domain
from interlock.dpe import envelope
from interlock.dpe.document import Fact
from interlock.dpe.flow import REMEDIES

KINDS = ("content", "refusal", "tool_call")
MAX_WINDOW_ID_CHARS = 256


@dataclass(frozen=True)
class Output:
    """One text of a choice."""

    choice_index: int
    text: str
    kind: str = "content"


@dataclass(frozen=True)
class PriorWindow:
    """An earlier answer of the session that was released."""

    window_id: str
    text: str


@dataclass(frozen=True)
class Request:
    """What is analysed. Without outputs the answer is empty, and that is a finding, not an error."""

    outputs: tuple[Output, ...]
    facts: tuple[Fact, ...] = ()
    query: str = ""
    prompt: str = ""
    loop_depth: int = 0
    domain: str = ""
    prior: tuple[PriorWindow, ...] = ()
    flow_remediation: str = ""
    governed: bool = False


@dataclass(frozen=True)
class Bounds:
    """The most that one analysis takes on; more is refused, never skipped (reliability.md A-25)."""

    text_bytes: int
    facts: int
    claims: int
    choices: int
    prior_bytes: int
    prior_windows: int

    def check(self, request: Request) -> None:
        """Refuse a request above a bound or outside the interface."""
        envelope.checked(request.facts, max_facts=self.facts)
        texts = {"query": request.query, "prompt": request.prompt}
        texts |= {f"output {number}": output.text for number, output in enumerate(request.outputs)}
        for what, text in texts.items():
            if (found := len(text.encode())) > self.text_bytes:
                raise exhausted(
                    "TEXT_TOO_LARGE", f"{what} is too long", limit=str(self.text_bytes), found=str(found), what=what
                )
        for output in request.outputs:
            if output.choice_index < 0 or output.kind not in KINDS:
                raise invalid("OUTPUT_INVALID", f"an output has a choice index from 0 and a kind of {', '.join(KINDS)}")
        if (found := len({output.choice_index for output in request.outputs})) > self.choices:
            raise exhausted("CHOICE_LIMIT_EXCEEDED", "too many choices", limit=str(self.choices), found=str(found))
        self._check_session(request)

    def _check_session(self, request: Request) -> None:
        """Refuse what breaks the interface about earlier windows and the registered system."""
        if (found := len(request.prior)) > self.prior_windows:
            raise exhausted(
                "PRIOR_LIMIT_EXCEEDED", "too many earlier windows", limit=str(self.prior_windows), found=str(found)
            )
        if (found := sum(len(window.text.encode()) for window in request.prior)) > self.prior_bytes:
            raise exhausted(
                "PRIOR_TOO_LARGE", "the earlier windows are too long", limit=str(self.prior_bytes), found=str(found)
            )
        names = {window.window_id for window in request.prior}
        if len(names) != len(request.prior) or any(not 1 <= len(name) <= MAX_WINDOW_ID_CHARS for name in names):
            raise invalid(
                "PRIOR_WINDOW_INVALID",
                f"an earlier window has an id of its own, of 1 to {MAX_WINDOW_ID_CHARS} characters",
            )
        if canonical_domain(request.domain) is None:
            raise invalid("AI_DOMAIN_UNKNOWN", f"a domain is one of {', '.join(DOMAINS)}, or empty")
        if request.flow_remediation and request.flow_remediation not in REMEDIES:
            raise invalid("FLOW_REMEDIATION_UNKNOWN", f"a remedy of the flow is one of {', '.join(sorted(REMEDIES))}")
