"""Sections of given text inside a message, which a label, a mark, a lead or an order opens (ATT-5).

A section ends at a label of the writer's own, at the mark that closes it, or at words that speak of it as standing above. A question
or an order at its end is the writer's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from interlock.sidecar.call import blocks, labels
from interlock.sidecar.call.labels import LabelPart

_KINDS = (
    r"contexts?|background|documents?|docs?|sources?|passages?|articles?|excerpts?|references?|texts?|snippets?|chunks?"
    r"|transcripts?|emails?|letters?|reports?|contracts?|notes|logs?|data|tables?|records?|paragraphs?|content|knowledge"
    r"|evidence|facts|results|search results|faq|manual|policy|message|review|story|extract|material|file"
)
_QUALIFIED = (
    rf"(?:[\w-]+ ){{0,3}}(?:{_KINDS})(?: (?:information|documents?|passages?|text|data|base|articles?|results))?"
)
_LABEL = re.compile(
    rf"[ \t]*(?:#{{1,6}} *)?(?:\*\*)?(?:{_QUALIFIED})(?: ?(?:\d{{1,3}}|\(\d{{1,3}}\)|\[\d{{1,3}}\]))?(?:\*\*)?"
    r"(?: (?:is|are) (?:given |provided |shown )?below\.?)?[ \t]*(?:\*\*)?(?::|(?<=below\.)|(?<=below))(?:\*\*)?",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"[ \t]*#{{1,6}} +(?:{_QUALIFIED})[ \t]*$", re.IGNORECASE)
_LEAD = re.compile(
    rf"\b(?:following|below|attached|this|these|here (?:is|are)|given|retrieved|provided)\b[^.?!\n]{{0,60}}\b(?:{_KINDS})\b",
    re.IGNORECASE,
)
_PROGRAM = re.compile(
    r"\b(?:this|these|the following|below)\b[^.?!:\n]{0,40}\b(?:code|program|script|function|class|traceback|configuration|config)\b[^.?!:\n]{0,25}:[ \t]*$",
    re.IGNORECASE,
)
_WANTS = re.compile(
    r"\s*(?:please )?(?:write|create|make|build|implement|generate|add|draft)\b|.{0,200}\b(?:should|must|needs?)\b",
    re.IGNORECASE,
)
"""A program that is asked for is none that is given."""
_GIVEN = re.compile(
    r"\s*(?:given|based on|using|with|from) (?:the|this|that|only)\b[^.?!\n]{0,60}\b(?:" + _KINDS + r")\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:please |now |so,? |then |and |but )?(?:answer|summari[sz]e|explain|list|write|tell|give|compare|describe|extract"
    r"|translate|identify|find|what|who|whom|whose|when|where|which|why|how|is|are|was|were|do|does|did|can|could|would|should|will"
    r"|has|have|using|use|based on|respond|reply|return|provide|show|create|make|draft|send|book|if you|i |let me|help|check"
    r"|do not|don't|only|rewrite|classify|rate|calculate|compute)\b",
    re.IGNORECASE,
)
_QUESTION_LABEL = re.compile(
    r"^[ \t]*(?:\*\*)?(?:question|query|user query|user question|user|q)(?:\*\*)?[ \t]*:", re.IGNORECASE | re.MULTILINE
)

_CONDITION = re.compile(
    r"\s*(?:[-*] |\d{1,2}[.)] )?(?:if|when|unless|return|keep|always|never|don't|do not|be|include|make|please|wenn|falls|bitte|si|s'il|se|als|jeśli|если"
    r"|pokud|om|eğer|如果|若|请|もし)\b",
    re.IGNORECASE,
)
"""How the rest of an instruction begins that stands before its documents."""
_TEMPLATE_MARK = re.compile(r"\[/?[A-Z]{2,8}\]|</?[^\W\d][\w:.-]{0,40}>|<\|\w{1,20}\|>")
_ASKING_TAG = re.compile(r"\s*<([^\W\d][\w:.-]{0,40})")
_MAIL_HEADER = re.compile(
    r"[ \t>*]*(?P<name>From|To|Cc|Subject|Date|Sent|Von|An|Betreff|Datum|Gesendet|De|À|Objet|Envoyé|Para|Asunto|Fecha|Da|A|Oggetto|Data|Assunto|Van|Aan"
    r"|Onderwerp|Od|Do|Temat|От|Кому|Тема|Från|Till|Ämne|发件人|收件人|主题|差出人|宛先|件名|보낸 사람|받는 사람|제목)\*{0,2}[ \t]*[:：]"
)
_SENDERS = frozenset({"From", "Von", "De", "Da", "Van", "Od", "От", "Från", "发件人", "差出人", "보낸 사람"})
_LONGEST_TAIL = 400
_MOST_INSTRUCTIONS = 5
"""Lines, or paragraphs, of instructions between a lead and its documents."""
_MOST_HEADERS = 12
_LEAST_WORKED_ON = 40
"""Characters from which what stands before a last order (*Summarize the text above.*) is the text that it speaks of."""
_ENDS_OF_QUESTIONS = ("?", "？", "؟", "՞")

Span = blocks.Span
Covers = Callable[[int], bool]


def find(text: str, covered: Covers) -> Iterator[Span]:
    """Yield the sections of *text*; a line that begins where *covered* says that it is taken opens none."""
    lines = blocks.line_spans(text)
    asks = _last_asking(text, lines)
    number, found = 0, False
    while number < len(lines):
        start, _ = lines[number]
        skipped = covered(start) or text[slice(*lines[number])].strip() == ""
        opened = None if skipped else _opened(text, lines, number, asks=asks)
        if opened is None:
            number += 1
            continue
        first, at = opened
        last = _section_end(text, lines, first, inline=bool(text[at : lines[first][1]].strip()))
        stop = lines[last][1]
        end = at + len(_without_own_tail(text[at:stop]))
        found = found or any(map(str.isalnum, text[at:end]))
        yield at, end
        number = last + 1
    if not found and (end := _worked_on(text)):
        yield 0, end


def is_label(line: str) -> bool:
    """Whether a line only says what follows. *Summarize this article:* says what to do with it."""
    if _IMPERATIVE.match(line.lstrip()):
        return False
    if _LABEL.fullmatch(line.rstrip()) or _HEADING.fullmatch(line):
        return True
    label = labels.read(line)
    return label is not None and not line[label.end :].strip()


def own_label(line: str) -> int:
    """Return where the words of a line begin behind a label of the writer's own; 0 when it has none."""
    if known := blocks.OWN_LABEL.match(line):
        return known.end()
    label = labels.read(line)
    return label.end if label is not None and label.part is LabelPart.OWN else 0


def _last_asking(text: str, lines: Sequence[Span]) -> int:
    """Return the place of the last label of a question."""
    last = max((match.start() for match in _QUESTION_LABEL.finditer(text)), default=-1)
    for start, end in reversed(lines):
        if start <= last:
            break
        label = labels.read(text[start:end])
        if label is not None and label.part is LabelPart.OWN and _says_more(text[start + label.end :]):
            return start
    return last


def _says_more(text: str) -> bool:
    """Whether there is something behind a label: *Answer:* at the end of a prompt asks for nothing of its own."""
    return any(map(str.isalnum, _TEMPLATE_MARK.sub("", text[:_LONGEST_TAIL])))


def _opened(text: str, lines: Sequence[Span], number: int, *, asks: int) -> tuple[int, int] | None:
    """Return the line and the place at which the section begins that a line opens; ``None`` when it opens none."""
    start, end = lines[number]
    line = text[start:end]
    if _is_mail(text, lines, number) or (_is_first(text, start) and _twin(text, lines, number) is not None):
        return number, start
    label = _LABEL.match(line)
    if label and _says_what_follows(line, label.end()):
        return number, start + label.end()
    if _HEADING.match(line):
        return number, end
    said = labels.read(line)
    if said is not None and said.part is LabelPart.SOURCE and not _IMPERATIVE.match(line.lstrip()):
        return number, start + said.end
    if not line.strip() or blocks.OWN_LABEL.match(line) or (said is not None and said.part is LabelPart.OWN):
        return None
    return _led(text, lines, number, asks=asks)


def _says_what_follows(line: str, end: int) -> bool:
    """Whether a label says what follows, and is no order to make it."""
    if labels.asks_for(line[:end]):
        return False
    return not line[end:].strip() or not _IMPERATIVE.match(line.lstrip())


def _is_first(text: str, start: int) -> bool:
    return not text[:start].strip()


def _is_mail(text: str, lines: Sequence[Span], number: int) -> bool:
    """Whether a mail begins at a line: at least two lines of its head, one of which says who sent it."""
    names: list[str] = []
    for start, end in lines[number : number + _MOST_HEADERS]:
        header = _MAIL_HEADER.match(text, start, end)
        if header is None:
            break
        names.append(header["name"])
    return len(names) > 1 and not _SENDERS.isdisjoint(names)


def _led(text: str, lines: Sequence[Span], number: int, *, asks: int) -> tuple[int, int] | None:
    """Return where the section begins that a sentence leads to, or an order to work on a text."""
    start, end = lines[number]
    line = text[start:end]
    if (place := labels.works_on(line)) is not None:
        return number, start + place
    leads = _LEAD.search(line) is not None
    if (leads and line.rstrip().endswith((":", "below.", "below"))) or labels.leads_on(line) or _shows_program(line):
        return number, end
    following = _next_line(text, lines, number)
    leads = leads or labels.leads(line)
    if leads and (ruled := _ruled_off(text, lines, number)) is not None:
        return ruled, lines[ruled][0]
    if leads and asks > end:
        return _behind_instructions(text, lines, number, asks)
    if leads and labels.works(line) and following is not None and following > number + 1:
        begin = _behind_orders(text, lines, following)
        return None if begin is None else (begin, lines[begin][0])
    return None


def _shows_program(line: str) -> bool:
    return _PROGRAM.search(line[-labels.LONGEST_LEAD :]) is not None and not _WANTS.match(line)


def _ruled_off(text: str, lines: Sequence[Span], number: int) -> int | None:
    """Return the rule that opens what a rule closes, near behind the line *number*."""
    near = range(number + 1, min(number + 1 + _MOST_INSTRUCTIONS, len(lines)))
    rule = next((n for n in near if blocks.SHORT_RULE.match(text[slice(*lines[n])])), None)
    return None if rule is None or _twin(text, lines, rule) is None else rule


def _behind_instructions(text: str, lines: Sequence[Span], number: int, asks: int) -> tuple[int, int] | None:
    """Return where the documents of a template begin, between its instructions and the label of its question."""
    following = _next_line(text, lines, number)
    if following is not None and following > number + 1:
        documents = lines[following][0] < asks and labels.read(text[slice(*lines[following])]) is None
        return (following, lines[following][0]) if documents else None
    near = range(number + 1, min(number + _MOST_INSTRUCTIONS, len(lines)))
    blank = next((n for n in near if not text[slice(*lines[n])].strip()), None)
    behind = None if blank is None else _next_line(text, lines, blank)
    if behind is not None and lines[behind][0] < asks and labels.read(text[slice(*lines[behind])]) is None:
        return behind, lines[behind][0]
    for first in near:
        if lines[first][0] >= asks or labels.read(text[slice(*lines[first])]) is not None:
            return None
        if not _instructs(text[slice(*lines[first])]):
            return first, lines[first][0]
    return None


def _behind_orders(text: str, lines: Sequence[Span], number: int) -> int | None:
    """Return the first line from *number* on whose paragraph is no order; ``None`` where there is none near."""
    for _ in range(_MOST_INSTRUCTIONS):
        if not _instructs(text[slice(*lines[number])]):
            return number
        blank = next((n for n in range(number, len(lines)) if not text[slice(*lines[n])].strip()), None)
        following = None if blank is None else _next_line(text, lines, blank)
        if following is None:
            return None
        number = following
    return None


def _instructs(line: str) -> bool:
    return bool(_IMPERATIVE.match(line.lstrip()) or _CONDITION.match(line))


def _next_line(text: str, lines: Sequence[Span], number: int) -> int | None:
    return next((n for n in range(number + 1, len(lines)) if text[slice(*lines[n])].strip()), None)


def _twin(text: str, lines: Sequence[Span], number: int) -> int | None:
    """Return the line that closes what the rule at *number* opens: the same rule again, before a label of the writer's own."""
    rule = text[slice(*lines[number])].strip()
    if not blocks.SHORT_RULE.match(rule):
        return None
    found = None
    for n in range(number + 1, len(lines)):
        line = text[slice(*lines[n])]
        if line.strip() == rule:
            found = n
        elif _is_own(line) or _GIVEN.match(line):
            break
    return found


def _section_end(text: str, lines: Sequence[Span], opening: int, *, inline: bool) -> int:
    """Return the last line of the section that the line *opening* opens."""
    first = opening if inline else _next_line(text, lines, opening)
    for ruled in (opening, first):
        if ruled is not None and (twin := _twin(text, lines, ruled)) is not None:
            return twin
    last, said, parted = opening, inline, dict[str, int]()
    for number in range(opening + 1, len(lines)):
        line = text[slice(*lines[number])]
        if not line.strip():
            last = number
            continue
        if blocks.RULE.match(line):
            if said and _last_twin(text, lines, number, parted) <= number:
                return number
            continue
        if _is_own(line) or _GIVEN.match(line) or labels.points_back(line):
            break
        if (label := labels.read(line)) is not None and label.part is LabelPart.END:
            return number
        last, said = number, True
    return last


def _last_twin(text: str, lines: Sequence[Span], number: int, known: dict[str, int]) -> int:
    """Return the last line that is the same rule as the one at *number*; each rule is looked for once."""
    rule = text[slice(*lines[number])].strip()
    if rule not in known:
        twin = _twin(text, lines, number)
        known[rule] = number if twin is None else twin
    return known[rule]


def _is_own(line: str) -> bool:
    """Whether a line begins a part of the writer's own."""
    if own_label(line):
        return True
    tag = _ASKING_TAG.match(line)
    return tag is not None and blocks.asks(tag[1])


def _worked_on(text: str) -> int:
    """Return the end of a text that the writer's last paragraph orders to work on; 0 when it orders nothing of that kind."""
    body = text.rstrip()
    cut = body.rfind("\n\n")
    order = body[cut:].strip()
    if cut < _LEAST_WORKED_ON or "\n" in order or not labels.works_back(order):
        return 0
    return cut


def _without_own_tail(section: str) -> str:
    """Return a section without the question or the order that follows it without a label."""
    kept = section.rstrip()
    for _ in range(3):
        cut = max(kept.rfind("\n\n"), kept.rfind("\n"))
        tail, head = kept[cut + 1 :].strip(), kept[: cut + 1].rstrip()
        apart = kept[:cut].endswith("\n") or kept[cut - 1 : cut + 1] == "\n\n"
        if not tail or not (tail.endswith(_ENDS_OF_QUESTIONS) or (apart and _orders(tail))):
            break
        inner = _last_question(tail)
        if not any(map(str.isalnum, head)) or inner > 0:
            return kept[: len(kept) - len(tail) + inner]
        kept = head
    return kept


def _orders(tail: str) -> bool:
    return len(tail) < _LONGEST_TAIL and bool(_IMPERATIVE.match(tail) or labels.orders(tail))


def _last_question(line: str) -> int:
    """Return where the questions at the end of a line begin; the line's start when it is all question."""
    if not line.endswith(_ENDS_OF_QUESTIONS):
        return 0
    at = len(line)
    for match in reversed(list(re.finditer(r"(?<=[.!?])\s+|(?<=[。！？])", line))):
        if not line[match.end() : at].rstrip().endswith(_ENDS_OF_QUESTIONS):
            return at
        at = match.end()
    return 0 if line[:at].rstrip().endswith(_ENDS_OF_QUESTIONS) or at == len(line) else at
