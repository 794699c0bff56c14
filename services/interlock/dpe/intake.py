"""What comes in: one dispatch's outputs with their evidence, held against the bounds of an analysis."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.errors import exhausted, invalid
from interlock.dpe import envelope
from interlock.dpe.document import Fact

KINDS = ("content", "refusal", "tool_call")


@dataclass(frozen=True)
class Output:
    """One text of a choice."""

    choice_index: int
    text: str
    kind: str = "content"


@dataclass(frozen=True)
class Request:
    """What is analysed. Without outputs the answer is empty, and that is a finding, not an error."""

    outputs: tuple[Output, ...]
    facts: tuple[Fact, ...] = ()
    query: str = ""
    prompt: str = ""
    loop_depth: int = 0
    domain: str = ""


@dataclass(frozen=True)
class Bounds:
    """The most that one analysis takes on; more is refused, never skipped (reliability.md A-25)."""

    text_bytes: int
    facts: int
    claims: int
    choices: int

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
