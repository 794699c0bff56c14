"""Stage 1a, sentences: the blocks of an output, parsed and cut into sentences (SPEC-005 §3).

The parser is loaded for clauses and names anyway, and of the measured splitters it finds sentence ends best once blank
lines are removed. It never gets more than a few thousand characters at once, so one endless line costs no more than
many short ones. A paragraph is cut behind sentences that surely end, where what is before does not change with what follows: an
answer that grows is not read anew from its first word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.dpe.document import Sentence
from interlock.dpe.text.layout import BlockKind, TextBlock
from interlock.dpe.text.text import Text
from interlock.dpe.text.wordlists import word_set

PIECE_CHARS = 3000
RUN_CHARS = 60
"""Characters of a paragraph after which the models get what follows as a text of its own, from the next sentence that surely begins."""
WORD_PART = 25

_LONGEST_ABBREVIATION = 12
_ORDINAL = re.compile(r"(?:^|[\s(–-])\d{1,2}\.\Z")
_AFTER_ORDINAL = re.compile(
    r"(?:januar|jänner|jan|februar|feb|märz|mär|marts|mars|april|apr|mai|maj|juni|jun|juli|jul|august|aug|september|sept?|oktober|okt"
    r"|november|nov|dezember|desember|december|dez|ledna|února|března|dubna|května|června|července|srpna|září|října|listopadu|prosince"
    r"|januára|februára|marca|apríla|mája|júna|júla|augusta|septembra|októbra|novembra|decembra|\w{3,8}kuu(?:ta|n)|jahrhunderts?|stock"
    r"|etage|klasse|quartals?|platz|århundrede|kvartal|století|patře)\b|(?-i:[a-zà-ž])",
    re.IGNORECASE,
)
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:z\. ?B|d\. ?h|u\. ?a|i\. ?d\. ?R|z\. ?T|Nr|Abs|bzw|inkl|zzgl|ggf|evtl|Mio|Mrd|f\.eks|bl\.a|t\.ex|čl|tzv|např"
    r"|p\. ?ej|núm)\.\Z|(?:^|[\s(])[zd]\.\Z"
)
_FULL_STOP = re.compile("[。！？｡]")
_SURE_END = re.compile(
    r"(?:(?<=[a-zß-öø-ÿ]{3})|(?<=[0-9]{3})|(?<=[a-zß-öø-ÿ]{3}[)\"”’%]))[.!?][\"'”’)\]]{0,2} (?=[\"'“‘(]?[A-ZÀ-ÖØ-Þ])"
)
_ENDS = re.compile(f"{_FULL_STOP.pattern}|{_SURE_END.pattern}")
_MAY_GO_ON = word_set(
    "allg apod approx aprox art assn assoc atd ausschl ave avg bijv blvd boul bros bspw bzw cap capt chap corp corr dept dipl "
    "dist drs einschl eks ekskl entspr enz eqs esq est etc evtl evt excl exkl ext fig figs geb gem gen ggf gov hon hosp ibid "
    "inc incl inkl insb insbes intl jan feb mar apr jun jul aug sep sept oct nov dec lfd ltd max messrs min mind misc monatl "
    "mrs mio mrd nat natl núm orig osv pag pres prof profs pvt qty ref repr resp ret rev sec sect sen sens sgt sog spez std "
    "tel temp tlf trans univ usw verh vgl viz vol vorm zzgl"
)
"""Abbreviations that a sentence may go on behind, with a capital too. One too many costs nothing: the parser then looks."""
_NO_LETTER = re.compile(r"\W")
_LONGEST_WORD = 9


@dataclass(frozen=True)
class Parsed:
    """A sentence with its parse. Character *n* of the parse is character *n* - ``base`` of ``text``."""

    sentence: Sentence
    text: Text
    kind: BlockKind
    lead: str
    tokens: Any
    base: int

    def between(self, start: int, end: int) -> Text:
        """Return the text between two character offsets of the parse."""
        return self.text.cut(max(0, start - self.base), min(len(self.text.chars), end - self.base))


def sentences(blocks: Sequence[TextBlock], nlp: Any, *, choice_index: int, first_index: int) -> Iterator[Parsed]:
    """Yield the parsed sentences of an output lazily: a caller that has enough stops the parser."""
    parts = pieces(blocks)
    index = first_index
    for piece, doc in zip(parts, nlp.pipe((p.text.chars for p in parts), batch_size=16), strict=True):
        for span in _spans(piece, doc):
            text = piece.text.cut(span.start_char, span.end_char)
            if not any(c.isalnum() for c in text.chars):
                continue
            start, end = text.origin
            base = span.start_char + _leading(piece.text.chars, span.start_char)
            yield Parsed(
                Sentence(index, text.chars, start, end, choice_index), text, piece.kind, piece.lead, span, base
            )
            index += 1


def pieces(blocks: Sequence[TextBlock]) -> list[TextBlock]:
    """Return the texts that the models receive."""
    return [piece for block in blocks for piece in _pieces(block)]


def _spans(piece: TextBlock, doc: Any) -> Iterator[Any]:
    """Yield the sentences of a piece. A line of code or of a table is one sentence."""
    if piece.kind not in {BlockKind.PROSE, BlockKind.COMMENT}:
        yield doc[:]
        return
    spans = list(doc.sents)
    first = 0
    for place, span in enumerate(spans):
        following = spans[place + 1].text if place + 1 < len(spans) else ""
        if not goes_on(span.text, following):
            yield doc[spans[first].start : span.end]
            first = place + 1


def goes_on(sentence: str, following: str) -> bool:
    """Whether a full stop ends no sentence but an ordinal or an abbreviation, as German, Danish, Czech and others write them.

    *zahlbar bis zum 18. Mai*, *den 3. juni*, *z. B. Hunde*, *Art. Nr. 7*.
    """
    if sentence[-1:].isdigit() and following[:1].islower():
        return True  # SUGAR 450 g, where the parser takes capitals for a name
    if not following or not sentence.endswith("."):
        return False
    end = sentence[-_LONGEST_ABBREVIATION:]
    if _ORDINAL.search(end):
        return _AFTER_ORDINAL.match(following) is not None
    return _ABBREVIATED.search(end) is not None


def _leading(chars: str, at: int) -> int:
    count = 0
    while at + count < len(chars) and chars[at + count].isspace():
        count += 1
    return count


def _pieces(block: TextBlock) -> Iterator[TextBlock]:
    """Yield a block in pieces of bounded length: runs of whole sentences, cut after full stops unknown to the parser too, or at a space."""
    at, chars = 0, block.text.chars
    for stop in [*_ends(block), len(chars)]:
        while stop - at > PIECE_CHARS:
            cut = chars.rfind(" ", at + 1, at + PIECE_CHARS)
            end = cut if cut > at else at + PIECE_CHARS
            yield replace(block, text=block.text.cut(at, end))
            at = end
        if stop > at:
            yield replace(block, text=block.text.cut(at, stop))
            at = stop


def _ends(block: TextBlock) -> list[int]:
    """Return where a block is cut. Each place follows from what is before it and the letter behind it."""
    chars, found, begun = block.text.chars, list[int](), 0
    if block.kind not in {BlockKind.PROSE, BlockKind.COMMENT}:
        return [mark.end() for mark in _FULL_STOP.finditer(chars)]
    for mark in _ENDS.finditer(chars):
        wide = mark[0][-1] != " "
        if wide or (mark.end() - begun >= RUN_CHARS and not _may_go_on(chars, mark.start())):
            found.append(mark.end())
            begun = mark.end()
    return found


def _may_go_on(chars: str, place: int) -> bool:
    """Whether a full stop at a place may belong to the word before it."""
    return _NO_LETTER.split(chars[max(0, place - _LONGEST_WORD) : place])[-1].lower() in _MAY_GO_ON


def fitted(text: Text, limit: int, count: Callable[[Sequence[str]], list[int]]) -> list[Text]:
    """Return *text* in parts of at most *limit* tokens, cut between words, or inside a word that is longer."""
    surely = len(text.chars) * (1 if text.chars.isascii() else 4) <= limit
    if surely or count([text.chars])[0] <= limit:
        return [text] if text.chars else []
    words = _words(text)
    parts: list[Text] = []
    first, total = 0, 0
    for number, size in enumerate(count([text.chars[start:end] for start, end in words])):
        if number > first and total + size > limit:
            parts.append(text.cut(words[first][0], words[number - 1][1]))
            first, total = number, 0
        total += size
    return [*parts, text.cut(words[first][0], words[-1][1])]


def _words(text: Text) -> list[tuple[int, int]]:
    """Return the spans of the words. A word is cut into spans that surely fit."""
    spans: list[tuple[int, int]] = []
    at, chars = 0, text.chars
    for word in chars.split():
        at = chars.index(word, at)
        end = at + len(word)
        spans += [(start, min(end, start + WORD_PART)) for start in range(at, end, WORD_PART)]
        at = end
    return spans
