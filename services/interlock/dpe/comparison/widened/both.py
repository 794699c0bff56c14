"""One for both: *once one of the parties agrees* where a source demands that *both parties* do, and the other way round (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.dpe.comparison.bindings.clauses import sense_of
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_OF = r"(?:of\s+)?(?:the\s+|its\s+|their\s+|your\s+|these\s+|those\s+)?(?:two\s+|three\s+|four\s+)?"
_BOTH = pattern(rf"\b(?:both|all)\s+{_OF}([\p{{L}}’'-]+)", ignore_case=True)
_ONE = pattern(rf"\b(?:(?:any |only |just )?one|either|a single)\s+{_OF}([\p{{L}}’'-]+)", ignore_case=True)
_DEMANDS = pattern(
    r"\b(?:must|ha[sv]e to|had to|needs?|needed|requir\w+|obliged|if|when|once|provided|unless|until|only|as soon as|enough|suffic\w+"
    r"|subject to|consent|approval|agreement|signatures?)\b",
    ignore_case=True,
)
_PARTIES = word_set(
    "party side partner parent spouse director owner seller buyer signatory tenant landlord holder witness member founder key"
)
_SIDES = frozenset({"party", "parties", "side", "sides"})
_HALF = 0.5


def one_for_both(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return of how many a source demands what *claim* demands of one, or of both, alone; or ``None``."""
    if claim.text.rstrip().endswith("?") or _DEMANDS.search(claim.text) is None:
        return None
    for own, other in ((_ONE, _BOTH), (_BOTH, _ONE)):
        for noun, written in _counted(own, claim.text):
            if any(noun == each for source in evidence.passages for each, _ in _counted(own, source.text)):
                continue
            said = words_of("x " + claim.text.replace(written, " ")) - {"x"}
            for source in evidence.passages:
                for each, stated in _counted(other, source.text):
                    about = words_of("x " + source.text.replace(stated, " ")) - {"x"}
                    same = has_negator(claim.text) is has_negator(source.text) and _DEMANDS.search(source.text)
                    if each == noun and same and _is_close(said, about):
                        return Misbinding(CONTEXT_STRIPPED, "quantifier", stated, written, source.text, source.fact_id)
    return None


def _is_close(said: frozenset[str], about: frozenset[str]) -> bool:
    """Whether two sentences speak of one thing: half of the words of the shorter, in other words for one of them, or a figure."""
    shared = {sense_of(word) for word in said} & {sense_of(word) for word in about}
    return len(shared) >= _HALF * min(len(said), len(about)) or (
        len(shared) > 1 and any(word[0].isdigit() for word in shared)
    )


def _counted(form: Any, text: str) -> Iterator[tuple[str, str]]:
    """Yield the noun of each party that a text counts, one word for those of one meaning, with how that is written."""
    for match in form.finditer(text):
        noun = match[1].lower()
        plain = noun.removesuffix("ies") + "y" if noun.endswith("ies") else noun.removesuffix("s")
        if plain in _PARTIES:
            yield ("party" if noun in _SIDES else plain), match[0].strip()
