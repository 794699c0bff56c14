"""The readings of an output: as written, and with obfuscation removed. The worst reading counts (reliability.md A-24).

An obfuscated text has both readings, because what looks like obfuscation may be honest: neither reading can remove the
other's findings. Where word boundaries were lost, every day and everyday are separate readings. Every character of a
reading refers to the text as sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.document import PiiFinding
from interlock.dpe.request import Output
from interlock.dpe.text.addressing import addressed
from interlock.dpe.text.arguments import arguments, only_text, prose
from interlock.dpe.text.disguises import undisguised
from interlock.dpe.text.encodings import decoded, unseen
from interlock.dpe.text.marks import NO_MARKS, Marks, marks, traced, unmarked
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.text import Text, normalised, plain

Finder = Callable[[str, str], Iterable[PiiFinding]]

AS_WRITTEN, UNMASKED = 0, 1
_ROUNDS = 3
_MOST_REMEMBERED = 20_000
_CALL, _ANSWER = "tool_call", "answer"
_DELETIONS = "\b\x7f"
_TURNS_RIGHT, _TURNS_BACK = "\u202e", "\u202c\u2069\n"


@dataclass(frozen=True)
class Viewed:
    """One reading of an output.

    ``place`` is the output's index; ``hidden`` counts characters that the reading drops. Of a tool call the text is what
    its arguments say in prose; ``is_call`` marks it.
    """

    choice_index: int
    place: int
    view: int
    text: Text
    hidden: int
    addressed: int
    marks: Marks = NO_MARKS
    is_call: bool = False


def viewed(outputs: Sequence[Output]) -> list[Viewed]:
    """Return every output as written, and all outputs of a choice again for each unmasked reading of one of them.

    Citation marks are cut from every reading, and kept beside it.
    """
    sent = [_written(output) for output in outputs]
    clear = [_clear(text) for text in sent]
    most: dict[int, int] = {}
    for output, found in zip(outputs, clear, strict=True):
        most[output.choice_index] = max(most.get(output.choice_index, 0), len(found))
    views: list[Viewed] = []
    for place, (output, text, found) in enumerate(zip(outputs, sent, clear, strict=True)):
        seen, hidden = _normalised(text)
        is_call = output.kind == _CALL
        spoken, elsewhere = normalised(_spoken(output.text)) if is_call else (seen, hidden)
        in_written = addressed(spoken.chars)
        cited = _cited(output, text)
        written = unmarked(text, cited.spans)
        # The reader of a text counts what it hides; what other values of a call hide is counted here.
        more_hidden = max(0, elsewhere - hidden)
        views.append(Viewed(output.choice_index, place, AS_WRITTEN, written, more_hidden, in_written, cited, is_call))
        for number in range(most[output.choice_index]):
            shown, more = found[min(number, len(found) - 1)] if found else (seen, 0)
            in_shown = max(in_written, addressed(shown.chars))
            shown, all_hidden = unmarked(shown, cited.spans), hidden + more
            views.append(
                Viewed(output.choice_index, place, UNMASKED + number, shown, all_hidden, in_shown, cited, is_call)
            )
    return views


def _written(output: Output) -> Text:
    """Return what an output says: of a call its prose, of a structured answer its one text or all of it."""
    if output.kind == _CALL:
        return prose(output.text)
    return only_text(output.text) if output.kind == _ANSWER else plain(output.text)


def _cited(output: Output, text: Text) -> Marks:
    """Return the citation marks of an answer, also of one that is the one text of a call; a structure has none."""
    if output.kind == "content":
        return marks(output.text)
    return traced(marks(text.chars), text) if output.kind == _ANSWER else NO_MARKS


def _spoken(text: str) -> str:
    """Return everything that the arguments of a call say: keys and strings, without the escapes of JSON."""
    found = arguments(text)
    said = [one.value for one in found if isinstance(one.value, str)]
    return "\n".join([*(key for one in found for key in one.path), *said])


def _clear(text: Text) -> list[tuple[Text, int]]:
    """Return the unmasked readings of *text*: none, one, or one with long and one with short words."""
    raw = text.chars
    found = unmasked(raw)
    if found is None:
        return []
    other = unmasked(raw, short=True)
    kept = [found] if other is None or other[0].chars == found[0].chars else [found, other]
    return [(clear.traced(text), hidden) for clear, hidden in kept]


def unmasked(raw: str, *, short: bool = False) -> tuple[Text, int] | None:
    """Return *raw* unmasked, and the number of characters hidden inside the mask, or ``None`` if nothing masks it.

    *short* prefers shorter words where letters set apart allow two readings.
    """
    if len(raw) > _MOST_REMEMBERED:
        return _unmasked(raw, short=short)
    return STORE.of(f"unmasked {short}", (raw,), lambda: _unmasked(raw, short=short), bytes_a_character=100)


def _unmasked(raw: str, *, short: bool) -> tuple[Text, int] | None:
    seen = normalised(raw)[0]
    text = _normalised(unseen(_turned_by_marks(_without_deleted(plain(raw)))))[0]
    hidden = 0
    for _ in range(_ROUNDS):
        before = text.chars
        text, more = _normalised(decoded(text))
        text, _ = _normalised(undisguised(text, short=short))
        hidden += more if before != text.chars else 0
        if text.chars == before:
            break
    return None if _lines(text) == _lines(seen) else (text, hidden)


def _lines(text: Text) -> list[list[str]]:
    """Return the words of each line. A different amount of white space between them is no mask."""
    return [words for line in text.chars.splitlines() if (words := line.split())]


def personal(find: Finder, text: str, where: str) -> list[PiiFinding]:
    """Return the personal data of a text, as written and unmasked, with spans in the text as written."""
    found = list(find(text, where))
    seen, hidden = normalised(text)
    clear, _ = unmasked(text) or (seen if hidden else None, 0)
    if clear is not None:
        for each in find(clear.chars, where):
            start, end = clear.span(each.start, each.end)
            found.append(replace(each, start=start, end=end))
    return list({(each.type, each.start, each.end): each for each in reversed(found)}.values())[::-1]


def _normalised(text: Text) -> tuple[Text, int]:
    made, hidden = normalised(text.chars)
    return (text if made.chars == text.chars else made.traced(text)), hidden


def _without_deleted(text: Text) -> Text:
    """Return the text as a terminal shows it: a backspace removes the character before it."""
    if not any(mark in text.chars for mark in _DELETIONS):
        return text
    kept: list[int] = []
    for at, char in enumerate(text.chars):
        if char not in _DELETIONS:
            kept.append(at)
        elif kept and text.chars[kept[-1]] != "\n":
            kept.pop()
    return Text(
        "".join(text.chars[at] for at in kept), [text.starts[at] for at in kept], [text.ends[at] for at in kept]
    )


def _turned_by_marks(text: Text) -> Text:
    """Return the text in the order in which a right-to-left override displays it."""
    at = text.chars.find(_TURNS_RIGHT)
    parts, done = [], 0
    while at >= 0:
        end = min(
            (found for mark in _TURNS_BACK if (found := text.chars.find(mark, at + 1)) >= 0), default=len(text.chars)
        )
        parts += [text.part(done, at), text.part(at + 1, end).turned(0, end - at - 1)]
        done = end
        at = text.chars.find(_TURNS_RIGHT, end)
    return Text.of([*parts, text.part(done, len(text.chars))]) if parts else text
