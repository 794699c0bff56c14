"""Which text a reference to a numbered part points to: "clause 2", "§ 3", "step 4" (ATT-7).

NumberedParts are known by headings that name their kind ("Article 5 – Refunds", "§ 2 Miete"), else by the numbers of a list or of headings
("2. Term. …", "4.2 Deposits"), else by the sentences that mention them. Where none of these is there, nothing is known about what
"page 12" means, and nobody is accused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlock.dpe.document import Fact
from interlock.dpe.grounding.numbering import Passage, message_of
from interlock.dpe.text.patterns import pattern, spaced, span_of
from interlock.dpe.text.references.parts import KIND_WORDS, LISTED, PART_NUMBER, kind_of, parts_of, plain_number

_HEADING = spaced(
    rf"""
    (?m)^[\x20\t>*_#•\[(=—–-]{{0,10}}
    (?: (?P<kind>{KIND_WORDS})\s?(?P<number>{PART_NUMBER})(?:[\x20\t]*[.:)\]*_—–=-]|[\x20\t]+(?-i:\p{{Lu}}|[(„“"])|[\x20\t]*$)
      | \(?(?P<item>\d{{1,3}}(?:\.\d{{1,3}}){{0,4}})[.):][\x20\t*_]+\S
      | (?P<nested>\d{{1,3}}(?:\.\d{{1,3}}){{1,4}})[\x20\t]+(?-i:\p{{Lu}}) )
    | (?m)^\#{{1,6}}[\x20\t]+(?P<titled>\d{{1,3}}(?:\.\d{{1,3}}){{0,4}})[\x20\t]+\p{{L}}
    """,
    ignore_case=True,
)
_MENTION = spaced(rf"(?:{KIND_WORDS})\s?{PART_NUMBER}", ignore_case=True)
_BREAK = pattern(r"[.!?;]\s|\n")
_LIST = ""
_LEAST = 2
_MINOR = frozenset({"paragraph", "point", "item", "step", "condition"})

Spans = Mapping[str, tuple[Passage, ...]]


@dataclass(frozen=True)
class NumberedParts:
    """The passages of the parts of a call's sources: by kind and number of headings and lists, and of mentions in running text."""

    headed: Mapping[str, Spans] = field(default_factory=dict)
    mentioned: Mapping[str, Spans] = field(default_factory=dict)

    @staticmethod
    def of(facts: Sequence[Fact]) -> NumberedParts:
        """Return the parts of facts. A part holds to the next one, over the sentences of a message."""
        headed: dict[str, dict[str, list[Passage]]] = {}
        mentioned: dict[str, dict[str, list[Passage]]] = {}
        message = ""
        opened: dict[str, str] = {}
        for number, fact in enumerate(facts):
            same = message_of(fact.id)
            if not same or same != message:
                message, opened = same, {}
            headings = list(_HEADING.finditer(fact.content))
            _hold(headed, opened, number, fact.content, headings)
            for kind, label, passage in _mentions(fact.content, number, headings):
                mentioned.setdefault(kind, {}).setdefault(label, []).append(passage)
        return NumberedParts(
            *({k: {n: tuple(p) for n, p in v.items()} for k, v in each.items()} for each in (headed, mentioned))
        )

    def passages(self, kind: str, number: str) -> tuple[Passage, ...] | None:
        """Return what a part says; nothing where no numbering is known, ``None`` where the numbering has no such part."""
        known, named = self._numbering(kind)
        spans = known or self.mentioned.get(kind, {})
        found = _lookup(spans, number) or self.mentioned.get(kind, {}).get(number, ())
        if found or not spans:
            return found
        return None if named or _is_whole(spans, number) else ()

    def _numbering(self, kind: str) -> tuple[Spans, bool]:
        """Return the numbering that a kind of part is counted in, and whether its numbers are certain to be of that kind."""
        if len(self.headed.get(kind, {})) >= _LEAST:
            return self.headed[kind], True
        others = [spans for each, spans in self.headed.items() if each in LISTED and len(spans) >= _LEAST]
        numbered = self.headed.get(_LIST, {})
        if kind not in LISTED or (len(numbered) < _LEAST and len(others) != 1):
            return {}, bool(self.mentioned.get(kind))
        if len(numbered) >= _LEAST and (kind in _MINOR or not others):
            return numbered, False
        return (others[0], False) if len(others) == 1 else ({}, False)


def _hold(
    headed: dict[str, dict[str, list[Passage]]],
    opened: dict[str, str],
    fact: int,
    content: str,
    headings: Sequence[Any],
) -> None:
    """Give each stretch of a fact to the parts that are open there. A heading closes the open part of its own kind."""
    edges = [*((match.start(), match) for match in headings), (len(content), None)]
    at = 0
    for start, match in edges:
        if start > at:
            for kind, label in opened.items():
                headed[kind][label].append(Passage(fact, at, start))
        at = start
        if match is not None:
            kind, label = _heading(match)
            if kind:
                opened.pop(_LIST, None)  # a list does not run on under the next heading
            opened[kind] = label
            headed.setdefault(kind, {}).setdefault(label, [])


def _heading(match: Any) -> tuple[str, str]:
    if match["kind"]:
        return kind_of(match["kind"]), plain_number(match["number"])
    return _LIST, match["item"] or match["nested"] or match["titled"]


def _mentions(content: str, fact: int, headings: Sequence[Any]) -> Iterator[tuple[str, str, Passage]]:
    """Yield the parts that running text mentions, each with its sentence."""
    taken = {span_of(match, "kind")[0] for match in headings if match["kind"]}
    for match in _MENTION.finditer(content):
        if match.start() in taken:
            continue
        start = max((found.end() for found in _BREAK.finditer(content, 0, match.start())), default=0)
        ending = _BREAK.search(content, match.end())
        passage = Passage(fact, start, ending.start() + 1 if ending else len(content))
        for kind, label in parts_of(match.group()):
            yield kind, label, passage


def _lookup(spans: Spans, number: str) -> tuple[Passage, ...]:
    """Return the passages of a number with those of its sub-parts; of the part that holds it where it has none of its own."""
    own = tuple(p for label, found in spans.items() if _is_within(label, number) for p in found)
    if own:
        return own
    base = _base(number)
    while base:
        if base in spans and not any(label != base and _is_within(label, base) for label in spans):
            return spans[base]
        base = _base(base)
    return ()


def _is_within(label: str, number: str) -> bool:
    return label == number or label.startswith((f"{number}.", f"{number}("))


def _base(number: str) -> str:
    """Return the part that holds a sub-part: 4.2 of 4.2(b), 4 of 4.2, 4 of 4b."""
    if number.endswith(")"):
        return number.rpartition("(")[0]
    if number[-1:].isalpha() and number[:1].isdigit():
        return number[:-1]
    return number.rpartition(".")[0]


def _is_whole(spans: Spans, number: str) -> bool:
    """Whether a numbering has every part beside *number* from the first on, so that it would have this one too."""
    parent = number.rpartition(".")[0]
    beside = {label.partition("(")[0] for label in spans if label.rpartition(".")[0] == parent}
    last = [label.rpartition(".")[2] for label in beside]
    if not all(label.isdigit() for label in last):
        return True  # lettered: the labels that there are
    numbers = sorted(map(int, last))
    return len(numbers) >= _LEAST and numbers == list(range(1, numbers[-1] + 1))
