"""Parts of a prompt that show, by examples, how to answer: what stands in them states nothing about this case (ATT-5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.sidecar.call import blocks, labels

_HEADING = re.compile(r"[ \t]*(#{1,6})[ \t]+\S")
_BEGINS = re.compile(
    r"(?:^|[.!?:] )(?:here (?:is|are) )?(?:an? |some |for |# ?)?examples?(?: begin)?[ \t]*:?[ \t]*$", re.IGNORECASE
)
_TURN = re.compile(
    r"[ \t#>*-]*(?:now,? it'?s your turn|now,? your turn|end of (?:the )?examples?|examples? end|begin!)", re.IGNORECASE
)

Span = blocks.Span


def find(text: str) -> Iterator[Span]:
    """Yield the examples of *text*: below a heading of their own up to the next one, and up to words such as *now it's your turn*."""
    lines = blocks.line_spans(text)
    yield from _below_headings(text, lines)
    yield from _before_the_turn(text, lines)


def _below_headings(text: str, lines: list[Span]) -> Iterator[Span]:
    began, depth = -1, 0
    for start, end in lines:
        heading = _HEADING.match(text, start, end)
        if heading is None:
            continue
        if began >= 0 and len(heading[1]) <= depth:
            yield began, start
            began = -1
        if began < 0 and labels.shows(text[start:end]):
            began, depth = start, len(heading[1])


def _before_the_turn(text: str, lines: list[Span]) -> Iterator[Span]:
    began = -1
    for start, end in lines:
        if began < 0 and end - start < blocks.LONGEST_SHOWN and _BEGINS.search(text[start:end]):
            began = end
        elif began >= 0 and _TURN.match(text, start, end):
            yield began, start
            began = -1
