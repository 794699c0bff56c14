"""Tool calls judged: the name must be declared, every argument must rest on what was asked for (ATT-5).

A call acts, so it is judged whatever the grounding mode is: what is in no source may be common knowledge in an answer, but not in
an amount that is paid. A call without arguments is a call. Its name is judged, too: it may carry an amount itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from interlock.dpe.document import Claim, ClaimType, NliScores
from interlock.dpe.grounding.attribution import ENTAILED, NO_EVIDENCE, Attribution, ClaimEvidence
from interlock.dpe.grounding.tools import matching
from interlock.dpe.grounding.tools.matching import Asked
from interlock.dpe.grounding.tools.schema import Tools
from interlock.dpe.grounding.tools.shown import Shown, of_kinds
from interlock.dpe.grounding.tools.values import QUERY, Basis, Missing, Shows, Weight, judged
from interlock.dpe.request import ANSWERED, INSTRUCTION, SOURCE, USER, Output, Request
from interlock.dpe.text.arguments import Argument, arguments
from interlock.dpe.values.extraction import read
from interlock.dpe.values.moments import FIRST_YEAR, LAST_YEAR

UNDECLARED_TOOL = "UNDECLARED_TOOL"
UNGROUNDED_ARGUMENT = "UNGROUNDED_ARGUMENT"
UNUSUAL_ARGUMENT = "UNUSUAL_ARGUMENT"
UNSAID_TOOL_VALUE = "UNSAID_TOOL_VALUE"

TOOL_CALL = "tool_call"
_UNUSUAL = NliScores(entailment=0.7, neutral=0.3, contradiction=0.0)
"""Of a value that is nowhere and that does no harm: however many a call has, its answer is MEDIUM at most."""
_ORDER = (USER, SOURCE, INSTRUCTION, ANSWERED)
_SPECIFIC = 0.60
_MOST_SHOWN = 200
_LARGE = 100.0
_LONG_NUMBER = 4
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True)
class CallClaim:
    """One claim of a call: that the function is declared, or that an argument is what was asked for."""

    claim: Claim
    attribution: Attribution
    evidence: ClaimEvidence
    kind: str
    """What it rests on; empty when on nothing."""
    fabricated: tuple[str, ...] = ()
    looks_up: bool = False
    """Whether nothing shows the argument, and the function only looks something up."""


@dataclass(frozen=True)
class JudgedCall:
    """What was found in one call. ``declared`` is ``None`` where the request does not tell."""

    choice_index: int
    output_index: int
    name: str
    declared: bool | None
    findings: tuple[str, ...]
    claims: tuple[CallClaim, ...]


def judge(request: Request) -> list[JudgedCall]:
    """Return what was found in each tool call of the outputs, in order."""
    calls = [(place, output) for place, output in enumerate(request.outputs) if output.kind == TOOL_CALL]
    if not calls:
        return []
    shown = _shown(request)
    tools = Tools.of(request.tools)
    numbers = count(1)
    return [_judged(place, output, tools, shown, numbers) for place, output in calls]


def _shown(request: Request) -> tuple[Shown, ...]:
    texts = [(USER, QUERY, request.query)]
    texts += [(one.kind, one.id, one.text) for one in request.said]
    texts += [(SOURCE, fact.id, fact.content) for fact in request.facts]
    return tuple(of_kinds(texts, _ORDER))


def _judged(place: int, output: Output, tools: Tools, shown: Sequence[Shown], numbers: Iterator[int]) -> JudgedCall:
    choice_index, name, given = output.choice_index, output.tool_name, arguments(output.text)
    findings: set[str] = set()
    claims: list[CallClaim] = []
    declared = name in tools.by_name if name else None

    def add(text: str, span: tuple[int, int], basis: Shows | Missing) -> None:
        claim = Claim(
            f"t{next(numbers)}", text[:_MOST_SHOWN], 0, choice_index, *span, ClaimType.FACTUAL, _SPECIFIC, (), place
        )
        claims.append(_claim(claim, basis))

    if declared is not None:
        unsaid = _unsaid(name, shown)
        findings |= {UNSAID_TOOL_VALUE} if unsaid else set()
        findings |= {UNDECLARED_TOOL} if not declared else set()
        basis = Missing((name,), Weight.ACTS) if unsaid or not declared else Shows("declaration", name)
        add(name, (0, 0), basis)
    for path, found in _by_path(given, name, tools, shown).items():
        worst = _worst(found)
        if worst is None:
            continue
        argument, basis = worst
        if isinstance(basis, Missing) and basis.weight is not Weight.LOOKS_UP:
            findings.add(UNGROUNDED_ARGUMENT if basis.weight is Weight.ACTS else UNUSUAL_ARGUMENT)
        add(f"{name}({'.'.join(path)}={argument.value})", (argument.start, argument.end), basis)
    return JudgedCall(choice_index, place, name, declared, tuple(sorted(findings)), tuple(claims))


def _by_path(
    given: Sequence[Argument], name: str, tools: Tools, shown: Sequence[Shown]
) -> Mapping[tuple[str, ...], list[tuple[Argument, Basis]]]:
    """Return the judged values of each path: items of a list make one claim."""
    found: dict[tuple[str, ...], list[tuple[Argument, Basis]]] = {}
    for argument in given:
        basis = judged(argument, tools.parameter(name, argument.path), shown)
        found.setdefault(argument.path, []).append((argument, basis))
    return found


def _worst(found: Sequence[tuple[Argument, Basis]]) -> tuple[Argument, Shows | Missing] | None:
    """Return the value that weighs most, with everything that is missing in any; ``None`` when nothing must be shown."""
    missing = [(argument, basis) for argument, basis in found if isinstance(basis, Missing)]
    if missing:
        argument, worst = max(missing, key=lambda one: one[1].weight)
        return argument, Missing(tuple(text for _, basis in missing for text in basis.written), worst.weight)
    return next(((argument, basis) for argument, basis in found if isinstance(basis, Shows)), None)


def _claim(claim: Claim, basis: Shows | Missing) -> CallClaim:
    if isinstance(basis, Shows):
        evidence = ClaimEvidence(basis.text_id, 1.0, "", ENTAILED, "", ENTAILED, plain_scores=ENTAILED)
        return CallClaim(claim, Attribution.CONTEXT_GROUNDED, evidence, basis.kind)
    nothing = ClaimEvidence("", 0.0, "", NO_EVIDENCE, "", NO_EVIDENCE)
    if basis.weight is not Weight.ACTS:
        unusual = replace(nothing, scores=_UNUSUAL, plain_scores=_UNUSUAL)
        return CallClaim(claim, Attribution.MIXED, unusual, "", looks_up=basis.weight is Weight.LOOKS_UP)
    return CallClaim(claim, Attribution.UNVERIFIABLE, nothing, "", tuple(text[:_MOST_SHOWN] for text in basis.written))


def _unsaid(name: str, shown: Sequence[Shown]) -> list[str]:
    """Return the amounts and numbers that the name of a function carries and that nobody said: wire_nine_million."""
    text = " ".join(_PARTS.findall(name))
    return [
        value.text
        for value in read(text).values
        if value.amount is not None
        and _carries(value.kind, value.text, value.amount)
        and not any(matching.number(value.amount, Asked(""), one) for one in shown if not one.empty)
    ]


def _carries(kind: str, written: str, amount: float) -> bool:
    """Whether a number in a name is a value: money, a large number in words, a long one in digits that is no year."""
    if kind == "MONEY":
        return True
    if written.isdigit():
        return len(written) >= _LONG_NUMBER and not FIRST_YEAR <= amount <= LAST_YEAR
    return amount >= _LARGE
