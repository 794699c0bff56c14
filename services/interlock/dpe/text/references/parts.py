"""References to numbered parts of a source: "(clause 2)", "Under section 4.2, …", "§ 3 states …", "Art. 5: …" (ATT-7).

Such a reference is a citation: its sentence asserts what the part says, not its number. What is an argument of a verb stays
("subject to clause 7", "in breach of rule 4"), because the sentence is about that part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interlock.dpe.text.patterns import pattern, spaced, span_of

_SPELLINGS = {
    "clause": "clauses? cl\\. klauseln? cl[áa]usulas? klausul(?:en|er)? clausules?",
    "section": "(?:sub-?)?sections? sect?\\. secs\\. §§? abschnitte?s? secci[óo]n(?:es)? avsnitt(?:et)?",
    "article": "articles? arts?\\. artikeln? art[íi]culos?",
    "paragraph": "(?:sub-?)?paragraphs? paras?\\.? absatz absätze abs\\. p[áa]rrafos? alin[ée]as? stycket? paragraf(?:en|er)?",
    "point": "points? punkte?s? punkten puntos? ziffern? ziff\\.",
    "item": "items? bullets?",
    "rule": "rules? regeln? r[èe]gles? reglas?",
    "step": "steps? schritte?s? [ée]tapes? pasos? steget? stegen",
    "condition": "conditions? terms? bedingung(?:en)? condici[óo]n(?:es)? villkor(?:et)?",
    "recital": "recitals? erwägungsgr[uü]nde? consid[ée]rants? considerandos?",
    "page": "pages? pp?\\. seiten? p[áa]ginas? sidan? sidorna",
    "table": "tables? tabellen? tableaux? tablas? tabell(?:en)?",
    "figure": "figures? figs?\\. abbildung(?:en)? abb\\. figuras? figuren?",
    "chapter": "chapters? ch\\. chap\\. kapitels? kapitlet chapitres? cap[íi]tulos?",
    "appendix": "appendix appendices app\\. anhang annexes? annexe ap[ée]ndices? bilagan? anlagen? anexos? annex",
    "schedule": "schedules?",
    "exhibit": "exhibits?",
    "part": "parts? teile?s? parties? partes? del(?:en)?",
    "line": "lines? zeilen? lignes? l[íi]neas? raden?",
    "note": "notes? footnotes? fußnoten? notas?",
    "slide": "slides? folien? diapositivas?",
}
PART_KINDS = frozenset(_SPELLINGS)
LISTED = frozenset(
    {"clause", "section", "article", "paragraph", "point", "item", "rule", "step", "condition", "recital"}
)
"""Kinds of parts that a document may number without naming them: "2. Term. …"."""
_LETTERED = frozenset({"appendix", "schedule", "exhibit", "part", "chapter", "table", "figure"})
_RULING = frozenset(LISTED | {"chapter", "appendix", "schedule", "exhibit"}) - {"step", "item"}
KIND_WORDS = "|".join(spelling for spellings in _SPELLINGS.values() for spelling in spellings.split())
PART_NUMBER = r"(?:\d{1,3}(?:\.\d{1,3}){0,4}[a-z]?\b(?:\s?\([a-z0-9]{1,4}\)){0,3}|(?-i:[A-Z]|[IVXL]{1,6})\b)"
_AND = r"(?:and|or|to|und|oder|bis|sowie|et|ou|[àa]|y|e|o|och|eller|till)"
_RUN = rf"{PART_NUMBER}(?:\s?(?:[,;&–-]|,?\s{_AND}\s)\s?{PART_NUMBER}){{0,8}}"
_ONE = rf"(?:{KIND_WORDS})\s?{_RUN}"
_DOCUMENT = (
    r"(?:leases?|contracts?|agreements?|documents?|polic(?:y|ies)|guides?|manuals?|handbooks?|leaflets?|terms|rules|sources?"
    r"|texts?|reports?|statutes?|plans?|regulations|articles?|vertrage?s?|mietvertrage?s?|dokuments?|handbuchs?|berichts?"
    r"|contrat|r[èe]glement|document|contrato|documento|reglamento|avtalet|kontraktet|dokumentet)"
)
_OF = rf"(?:\s(?:of|in|to|des|der|du|de\sla|del|de|i|av)\s(?:(?:the|this|your|our|its|le|la)\s)?(?:\w{{2,20}}\s)?{_DOCUMENT})?"
_BOTH = rf"{_ONE}{_OF}(?:\s?(?:[,;]|,?\s{_AND})?\s?{_ONE}{_OF}){{0,4}}"
_SEE = r"(?:(?:see|cf\.|per|under|siehe|s\.|vgl\.|gem\.|gemäß|nach|voir|selon|véase|ver|según|se|enligt)\s(?:also\s|auch\s)?)?"
_SET_OUT = (
    r"(?:as\s(?:set\sout|stated|described|provided|explained|noted|shown|listed|laid\sdown|specified|defined|required|agreed)"
    r"\s(?:in|by|under|on))"
)
_UNDER = (
    rf"(?:under|according\sto|as\sper|per|pursuant\sto|in\saccordance\swith|in\sline\swith|{_SET_OUT}|laut|gemäß|nach"
    r"|gem\.|selon|d['’]après|conformément\s[àa](?:\sla)?|según|conforme\sa|enligt)"
)
_IN = r"(?:in|on|at|within|from|by|following|en|dans|[àa]|im|auf|i|på)"
_THE = r"(?:the\s|la\s|le\s|l['’]|el\s|der\s|dem\s|die\s)?"
_MARKUP = r"[*_]{0,3}"
_REFERENCE = spaced(
    rf"""
      (?P<code>`[^`\n]{{1,200}}`)
    | (?P<bracket>[\x20\t]*[(\[]\s?{_SEE}(?:{_THE}{_DOCUMENT},?\s)?(?P<inside>{_BOTH})(?:\s?[:,–—-]\s?[^()\[\]\n]{{1,60}})?\s?[)\]])
    | (?P<aside>[,;]\s{_SEE}(?P<last>{_BOTH})\s?(?:[)\]]))
    | (?P<label>(?m:^)[\x20\t>#*•_-]{{0,8}}(?:\d{{1,2}}[.)]\s)?{_MARKUP}(?P<headed>{_ONE}){_MARKUP}\s?[:–—][\x20\t]{_MARKUP})
    | (?P<under>[\x20\t]*,?[\x20\t]*\b{_UNDER}\s{_THE}(?P<basis>{_BOTH}),?[\x20\t]*)
    | (?P<opening>{_IN}\s{_THE}(?P<place>{_BOTH}),?[\x20\t]+)
    | (?P<subject>{_MARKUP}(?P<rules>{_ONE}{_OF}){_MARKUP})
    """,
    ignore_case=True,
)
_ONE_KIND = spaced(rf"(?P<kind>{KIND_WORDS})\s?(?P<run>{_RUN})", ignore_case=True)
_NUMBERS = spaced(
    rf"(?P<first>{PART_NUMBER})(?:\s?(?P<to>–|-|\sto\s|\sbis\s|\s[àa]\s|\still\s)\s?(?P<last>\d{{1,3}})\b)?",
    ignore_case=True,
)
_KINDS = tuple(
    (pattern(f"(?:{'|'.join(spellings.split())})", ignore_case=True), kind) for kind, spellings in _SPELLINGS.items()
)
_OPENS = pattern(r"(?:\A|\n|[.!?:;…][\"'”’)\]*_]{0,3}[ \t]+)[ \t>#*•_-]{0,8}(?:\d{1,2}[.)][ \t]+)?[\"“'*_]{0,3}\z")
_JOINS = pattern(
    r"(?:,|\b(?:and|but|because|since|as|that|so|while|und|aber|weil|et|mais|y|pero|och|men))[ \t]+\z", ignore_case=True
)
_VERB_AFTER = pattern(r"[ \t]+(?:\p{Ll}[\p{Ll}'’]+)")
_NOT_VERBS = pattern(
    r"[ \t]+(?:and|or|of|to|in|on|for|und|oder|et|ou|y|o|och|eller|above|below|as)\b", ignore_case=True
)
_OF_A_LAW = pattern(
    r",?[ \t]*(?:\(\d{1,3}\)[ \t]*)?(?:(?:of|des|der|du|de la|del|av)[ \t]+(?:the[ \t]+)?)?(?:\p{Lu}{2,}|\p{Lu}[\p{Ll}]+ (?:Act|Code|Law|Regulation|Directive|Convention))"
)
_MOST_IN_RANGE = 20
_BLANKS = " \t"


@dataclass(frozen=True)
class PartReference:
    """A reference to parts of one or more kinds, with its span, the text that takes its place, and where its claim stands.

    ``parts`` are pairs of kind and number. ``leads``: what it vouches for comes after it.
    """

    written: str
    parts: tuple[tuple[str, str], ...]
    start: int
    end: int
    put: str = ""
    leads: bool = False


def references(raw: str) -> Iterator[PartReference]:
    """Yield the references of an output that are citations, in order. Code spans have none."""
    for match in _REFERENCE.finditer(raw):
        if match["code"]:
            continue
        before, after = raw[max(0, match.start() - 60) : match.start()], raw[match.end() : match.end() + 60]
        for form, inside in _FORMS:
            if match[form]:
                parts = parts_of(match[inside])
                found = _placed(raw, match, form, before, after) if parts else None
                if found is not None and not _is_law(raw, match, inside):
                    start, end, put, leads = found
                    yield PartReference(match[inside].strip("*_ "), parts, start, end, put, leads)
                break


_FORMS = (
    ("bracket", "inside"),
    ("aside", "last"),
    ("label", "headed"),
    ("under", "basis"),
    ("opening", "place"),
    ("subject", "rules"),
)


def parts_of(text: str) -> tuple[tuple[str, str], ...]:
    """Return the kinds and numbers of all parts that a text names, ranges filled in."""
    found: list[tuple[str, str]] = []
    for match in _ONE_KIND.finditer(text):
        kind = kind_of(match["kind"])
        for number in _NUMBERS.finditer(match["run"]):
            first = number["first"]
            if not first[0].isdigit() and (kind not in _LETTERED or (match["kind"].islower() and first in {"I", "A"})):
                continue
            found.append((kind, plain_number(first)))
            last = int(number["last"]) if number["last"] and first.isdigit() else 0
            if first.isdigit() and int(first) < last <= int(first) + _MOST_IN_RANGE:
                found += [(kind, str(each)) for each in range(int(first) + 1, last + 1)]
    return tuple(dict.fromkeys(found))


def kind_of(written: str) -> str:
    """Return the kind of part that a word names, or an empty string."""
    return next((kind for spelling, kind in _KINDS if spelling.fullmatch(written)), "")


def plain_number(written: str) -> str:
    """Return a number as it is compared: without blanks, *4.2(b)*."""
    return "".join(written.split()).casefold()


def _placed(raw: str, match: Any, form: str, before: str, after: str) -> tuple[int, int, str, bool] | None:
    """Return the span to cut, what takes its place, and whether the reference leads; ``None`` where it is no citation."""
    start, end = match.span()
    if form == "bracket":
        return start, end, "", not before.strip()
    if form == "aside":
        return start, end - 1, "", False
    if form == "label":
        first, _ = span_of(match, "headed")
        return (first, end, "", True) if after.strip() else None
    opens = _OPENS.search(before + raw[start : start + _leading(match)]) is not None
    if form == "under":
        return _adverbial(raw, start, end, opens=opens)
    if form == "opening":
        return _adverbial(raw, start, end, opens=True) if opens else None
    return _subject(match, before, after, opens=opens)


def _leading(match: Any) -> int:
    text = match.group()
    return len(text) - len(text.lstrip(_BLANKS))


def _adverbial(raw: str, start: int, end: int, *, opens: bool) -> tuple[int, int, str, bool] | None:
    """Cut *Under clause 5, the tenant …* and *…, as stated in section 2.*, with the capital of a sentence that it opened."""
    if opens:
        start += len(raw[start:end]) - len(raw[start:end].lstrip(_BLANKS))
        following = raw[end : end + 1]
        if not following.isalpha():
            return None
        return (start, end + 1, following.upper(), True) if following.islower() else (start, end, "", True)
    return start, end, "" if raw[end : end + 1] in {"", ".", ",", ";", ":", "!", "?", ")", "\n"} else " ", False


def _subject(match: Any, before: str, after: str, *, opens: bool) -> tuple[int, int, str, bool] | None:
    """Put *the source* in the place of a part that says or rules something: *Clause 7 forbids …*."""
    kinds = {kind for kind, _ in parts_of(match["rules"])}
    if not kinds <= _RULING or not (opens or _JOINS.search(before)):
        return None
    if not _VERB_AFTER.match(after) or _NOT_VERBS.match(after):
        return None
    several = len(parts_of(match["rules"])) > 1
    return match.start(), match.end(), f"{'The' if opens else 'the'} source{'s' if several else ''}", True


def _is_law(raw: str, match: Any, inside: str) -> bool:
    """Whether a reference is to a law beside the source: Article 17 GDPR, section 21 of the Housing Act."""
    _, end = span_of(match, inside)
    return _OF_A_LAW.match(raw[end : end + 80]) is not None
