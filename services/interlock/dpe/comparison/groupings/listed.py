"""Listed groups: the lines *Label: one, two* of a source, the lists under a label, and the sections under its headings (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.comparison.groupings.group import Group, Grouping, denies, words_of
from interlock.dpe.text.patterns import pattern

_HEADING = pattern(r"^#{1,6}\s+(\S[^\n]{0,60})$")
_LABEL = pattern(r"^(?:[-*•]\s+)?(?:\*\*)?([^:|\n.\"{\[]{2,40}):(?:\*\*)?\s*(\S[^|\n]*)?$")
_ITEM = pattern(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+(\S[^\n]*)$")
_NEXT_LABEL = pattern(r"([.;])\s+(\p{Lu}[^:.;,|\n]{1,40}:\s)")
_JOINTS = pattern(r"\s*[,;/]\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+")
_DIGIT = pattern(r"\d")
_LONGEST_ITEM, _LEAST, _MOST_GROUPS, _OF_PROSE = 5, 2, 12, 3
_LONGEST, _LEAST_LINES = 8000, 3
_HEADED, _LABELLED, _BULLETED = "headed", "labelled", "bulleted"


@dataclass(frozen=True)
class _Section:
    """A heading or a label with the lines under it."""

    label: str
    kind: str
    lines: list[str]


def listed(text: str, fact_id: str) -> tuple[Grouping, ...]:
    """Return the runs of two or more sibling groups of a text."""
    if len(text) > _LONGEST or (":" not in text and "#" not in text):
        return ()
    runs = [run for run in _runs(text) if _LEAST <= len(run) <= _MOST_GROUPS]
    return tuple(
        each for run in runs for each in (_grouping(run, fact_id), _by_state(run, fact_id)) if each is not None
    )


def _runs(text: str) -> Iterator[list[_Section]]:
    """Yield the labels that follow each other, each with the lines under it; a line of prose ends a run of labels."""
    run: list[_Section] = []
    for line in filter(str.strip, _NEXT_LABEL.sub(r"\1\n\2", text).split("\n")):
        opened, item = _opened(line.strip(), run), _ITEM.search(line)
        under = bool(run) and (run[-1].kind == _HEADED or (run[-1].kind == _BULLETED and item is not None))
        if opened is not None and not (under and opened.kind == _LABELLED):
            if run and (run[-1].kind == _HEADED) is not (opened.kind == _HEADED):
                yield run
                run = []
            run.append(opened)
        elif under:
            run[-1].lines.append(item.group(1) if item else line.strip())
        else:
            yield run
            run = []
    yield run


def _opened(line: str, run: Sequence[_Section]) -> _Section | None:
    """Return the section that a line opens, or ``None``. Below a heading, only another heading opens one."""
    if heading := _HEADING.search(line):
        return _Section(heading.group(1), _HEADED, [])
    label = _LABEL.search(line)
    if label is None or (run and run[-1].kind == _HEADED):
        return None
    return _Section(
        label.group(1), _LABELLED if label.group(2) else _BULLETED, [label.group(2)] if label.group(2) else []
    )


def _grouping(run: Sequence[_Section], fact_id: str) -> Grouping | None:
    bodies = [_items(each) for each in run]
    bulleted = all(each.kind == _BULLETED for each in run)
    headed = all(each.kind == _HEADED for each in run)
    if not all(bodies) or not (headed or bulleted or _are_lists(bodies) or _are_values(bodies)):
        return None
    groups = tuple(_group(each.label, items) for each, items in zip(run, bodies, strict=True))
    return Grouping(groups, _written(run), fact_id)


def _by_state(run: Sequence[_Section], fact_id: str) -> Grouping | None:
    """Return the lines *Lamp: in stock* grouped by what they say of each, where several say the same."""
    if len(run) < _LEAST_LINES or not all(each.kind == _LABELLED for each in run):
        return None
    states: dict[str, list[frozenset[str]]] = {}
    for each in run:
        states.setdefault(each.lines[0].strip(" .").casefold(), []).append(words_of(each.label))
    short = all(len(state.split()) <= _LONGEST_ITEM and not _DIGIT.search(state) for state in states)
    if not short or not _LEAST <= len(states) < len(run):
        return None
    groups = tuple(Group(words_of(state), tuple(items), denied=denies(state)) for state, items in states.items())
    return Grouping(groups, _written(run), fact_id)


def _written(run: Sequence[_Section]) -> str:
    return "\n".join(f"{each.label}: {'; '.join(each.lines)}" for each in run)


def _items(section: _Section) -> list[str]:
    """Return what stands under a label: the items of a line or a list, or all of a section's prose as one."""
    lines, headed = section.lines, section.kind == _HEADED
    if len(lines) == 1:
        parts = [part for part in _JOINTS.split(lines[0].rstrip(".")) if part.strip()]
        if all(len(part.split()) <= _LONGEST_ITEM for part in parts) and (len(parts) > 1 or not headed):
            return parts
    return list(lines) if headed or all(len(line.split()) <= _LONGEST_ITEM for line in lines) else []


def _are_lists(bodies: Sequence[Sequence[str]]) -> bool:
    return sum(len(body) >= _LEAST for body in bodies) >= _LEAST


def _are_values(bodies: Sequence[Sequence[str]]) -> bool:
    """Whether each label has one figure of one sort: what tells adults' prices from children's."""
    sorts = {tuple(word for word in sorted(words_of(body[0])) if not word[0].isdigit()) for body in bodies}
    return all(len(body) == 1 and _DIGIT.search(body[0]) for body in bodies) and len(sorts) == 1


def _group(label: str, items: Sequence[str]) -> Group:
    long = max(len(item.split()) for item in items) > _LONGEST_ITEM
    return Group(words_of(label), tuple(map(words_of, items)), denied=denies(label), least=_OF_PROSE if long else 0)
