"""Intake: a request checked against the bounds of one analysis before any stage runs (reliability.md A-25)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from interlock.domain.errors import exhausted, invalid
from interlock.domain.risk.regulatory import DOMAINS, canonical_domain
from interlock.dpe.grounding import envelope
from interlock.dpe.quality.flow import REMEDIES
from interlock.dpe.quality.queries import MAX_NEEDS
from interlock.dpe.request import SAID_KINDS, Request

KINDS = ("content", "refusal", "tool_call", "answer")
"""Kinds of outputs; answer: the arguments of a function that returns the answer in a structure."""
MAX_WINDOW_ID_CHARS = 256
MAX_TOOLS = 512
MAX_TOOL_NAME_CHARS = 128
MAX_SUB_QUERY_CHARS = 500
_HASH = re.compile("sha256:[0-9a-f]{64}")
LINKED_FORMS = {
    "session_id": re.compile("crp_sess_[0-9A-Za-z]{16,32}"),
    "window_id": re.compile("crp_win_[0-9A-Za-z]{16,32}"),
    "hmac": _HASH,
    "chain_tip": _HASH,
    "agent_type": re.compile("[0-9A-Za-z._-]{0,64}"),
}
"""The form of each field of a linked result (SPEC-002 §4, SPEC-004 §9)."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of one analysis. A request above a bound is refused, never shortened (reliability.md A-25)."""

    text_bytes: int
    facts: int
    claims: int
    choices: int
    prior_bytes: int
    prior_windows: int

    def check(self, request: Request) -> None:
        """Refuse a request that is above a bound or malformed."""
        envelope.check_facts(request.facts, max_facts=self.facts)
        texts = {"query": request.query, "prompt": request.prompt}
        texts |= {f"output {number}": output.text for number, output in enumerate(request.outputs)}
        for what, text in texts.items():
            self.check_text(what, text)
        for output in request.outputs:
            if output.choice_index < 0 or output.kind not in KINDS or len(output.tool_name) > MAX_TOOL_NAME_CHARS:
                raise invalid(
                    "OUTPUT_INVALID",
                    f"an output needs a choice index of at least 0, one of these kinds: {', '.join(KINDS)}; "
                    f"and the name of a tool has at most {MAX_TOOL_NAME_CHARS} characters",
                )
        if (found := len({output.choice_index for output in request.outputs})) > self.choices:
            raise exhausted("CHOICE_LIMIT_EXCEEDED", "too many choices", limit=str(self.choices), found=str(found))
        self._check_session(request)
        self._check_merged(request)
        self._check_said(request)
        _check_sub_queries(request)
        self._check_linked(request)
        _check_consumed(request)

    def check_text(self, what: str, text: str) -> None:
        """Refuse a text above the byte bound; *what* names it in the refusal."""
        if (found := len(text.encode())) > self.text_bytes:
            raise exhausted(
                "TEXT_TOO_LARGE", f"{what} is too long", limit=str(self.text_bytes), found=str(found), what=what
            )

    def _check_session(self, request: Request) -> None:
        """Refuse malformed earlier windows, domains and flow remedies."""
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
                f"an earlier window needs a unique id of 1 to {MAX_WINDOW_ID_CHARS} characters",
            )
        if canonical_domain(request.domain) is None:
            raise invalid("AI_DOMAIN_UNKNOWN", f"the domain must be empty or one of: {', '.join(DOMAINS)}")
        if request.flow_remediation and request.flow_remediation not in REMEDIES:
            raise invalid(
                "FLOW_REMEDIATION_UNKNOWN", f"the flow remediation must be one of: {', '.join(sorted(REMEDIES))}"
            )

    def _check_merged(self, request: Request) -> None:
        """Refuse malformed merged answers. Their bounds are those of earlier windows."""
        if (found := len(request.merged)) > self.prior_windows:
            raise exhausted(
                "MERGED_LIMIT_EXCEEDED", "too many merged answers", limit=str(self.prior_windows), found=str(found)
            )
        for number, one in enumerate(request.merged):
            self.check_text(f"merged answer {number}", one.text)
        if (found := sum(len(one.text.encode()) for one in request.merged)) > self.prior_bytes:
            raise exhausted(
                "MERGED_TOO_LARGE", "the merged answers are too long", limit=str(self.prior_bytes), found=str(found)
            )
        names = {one.source_id for one in request.merged}
        if len(names) != len(request.merged) or any(not 1 <= len(name) <= MAX_WINDOW_ID_CHARS for name in names):
            raise invalid(
                "MERGED_ANSWER_INVALID",
                f"a merged answer needs a unique source id of 1 to {MAX_WINDOW_ID_CHARS} characters",
            )
        if any(
            len(one.label) > MAX_WINDOW_ID_CHARS or len(one.sub_query) > MAX_SUB_QUERY_CHARS for one in request.merged
        ):
            raise invalid(
                "MERGED_ANSWER_INVALID",
                f"a label may have {MAX_WINDOW_ID_CHARS} characters, a sub-query {MAX_SUB_QUERY_CHARS}",
            )

    def _check_said(self, request: Request) -> None:
        """Refuse malformed said texts and declared tools. What a body of the front may hold is within these bounds."""
        for number, one in enumerate(request.said):
            self.check_text(f"said text {number}", one.text)
            if one.kind not in SAID_KINDS or not 1 <= len(one.id) <= MAX_WINDOW_ID_CHARS:
                raise invalid(
                    "SAID_TEXT_INVALID",
                    f"a said text needs an id of 1 to {MAX_WINDOW_ID_CHARS} characters and one of these kinds: "
                    f"{', '.join(SAID_KINDS)}",
                )
        if len({one.id for one in request.said}) != len(request.said):
            raise invalid("SAID_TEXT_INVALID", "two said texts have the same id")
        if (found := sum(len(one.text.encode()) for one in request.said)) > 2 * self.text_bytes:
            raise exhausted(
                "SAID_TOO_LARGE", "the said texts are too long", limit=str(2 * self.text_bytes), found=str(found)
            )
        if (found := len(request.tools)) > MAX_TOOLS:
            raise exhausted("TOOL_LIMIT_EXCEEDED", "too many declared tools", limit=str(MAX_TOOLS), found=str(found))
        for tool in request.tools:
            self.check_text("the schema of a tool", tool.parameters_json)
            if not 1 <= len(tool.name) <= MAX_TOOL_NAME_CHARS:
                raise invalid("TOOL_INVALID", f"the name of a tool needs 1 to {MAX_TOOL_NAME_CHARS} characters")

    def _check_linked(self, request: Request) -> None:
        """Refuse a linked result whose ids or hashes are malformed, because the report is sealed with them."""
        if (found := len(request.linked)) > self.prior_windows:
            raise exhausted(
                "LINKED_LIMIT_EXCEEDED", "too many linked results", limit=str(self.prior_windows), found=str(found)
            )
        for one in request.linked:
            for name, form in LINKED_FORMS.items():
                if not form.fullmatch(getattr(one, name)):
                    raise invalid("LINKED_RESULT_INVALID", "an id or hash of a linked result is malformed", field=name)
        if len({(one.session_id, one.window_id) for one in request.linked}) != len(request.linked):
            raise invalid("LINKED_RESULT_INVALID", "the result of a window is linked twice", field="window_id")


def _check_consumed(request: Request) -> None:
    """Refuse an earlier answer that is among no facts, or whose figures are none: nothing is judged milder by mistake."""
    known = {fact.id for fact in request.facts}
    for one in request.consumed:
        shares = [one.score, *([] if one.grounding is None else [one.grounding])]
        if not one.fact_ids or not one.fact_ids <= known or not all(0.0 <= share <= 1.0 for share in shares):
            raise invalid(
                "CONSUMED_ANSWER_INVALID", "an earlier answer is not among the facts, or its figures are no shares"
            )


def _check_sub_queries(request: Request) -> None:
    """Refuse too many sub-queries, and sub-queries that are too long, empty or duplicated."""
    if (found := len(request.sub_queries)) > MAX_NEEDS:
        raise exhausted("SUB_QUERY_LIMIT_EXCEEDED", "too many sub-queries", limit=str(MAX_NEEDS), found=str(found))
    if any(len(text) > MAX_SUB_QUERY_CHARS or not any(map(str.isalnum, text)) for text in request.sub_queries):
        raise invalid(
            "SUB_QUERY_INVALID", f"a sub-query needs at least one word and at most {MAX_SUB_QUERY_CHARS} characters"
        )
    if len({" ".join(text.casefold().split()) for text in request.sub_queries}) != len(request.sub_queries):
        raise invalid("SUB_QUERY_INVALID", "two sub-queries are the same")
