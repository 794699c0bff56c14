"""The words of the special categories of GDPR Art. 9, and where a text has them (SPEC-005 §13.2).

The search is one RE2 expression over the text: an ordinary answer pays for nothing else of this stage.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import lines, word_set

HEALTH, BELIEF = "HEALTH_DATA", "BELIEF_OR_ORIGIN"
ILLNESS = word_set("illness care gene")
# What a person is said to be. The other classes need a verb: to have, to vote for, to convert to.
STATES = word_set("state faith partisan unionist people orientation")
_HEALTH_CLASSES = word_set("illness state care gene")

# Endings of the names of illnesses, operations and medicines, and ordinary words that end alike.
_ENDINGS = (
    r"(?:itis|osis|emia|aemia|pathy|plegia|algia|phobia|ectomy|ostomy|arrhythmia|dystrophy|sclerosis|cillin|azepam"
    r"|oxetine|formin|statin|sartan|prazole|gliptin|triptyline|setron|mycin|zumab|ximab|carcinoma|sarcoma|melanoma"
    r"|glioma|fibroma|myeloma|adenoma|blastoma|s['’]\s?(?:trade\s)?union)s?\b"
)
_ORDINARY = word_set(
    "diagnosis prognosis hypnosis osmosis metamorphosis symbiosis photosynthesis synthesis mitosis meiosis empathy "
    "sympathy antipathy apathy telepathy homeopathy academia nostalgia bohemia trophy catastrophy melatrophy "
    "apotheosis anagnorisis kenosis gnosis telosis homeostasis ostomy pathy xenophobia islamophobia homophobia transphobia "
    "technophobia hypertrophy"
)


@dataclass(frozen=True)
class Term:
    """A word of a special category, in code points of the searched text."""

    start: int
    end: int
    kind: str  # the finding's type
    group: str  # the class of the word list


@cache
def _vocabulary() -> tuple[Any, dict[str, str]]:
    """Return the expression of every term, and the class of each, read once in a process."""
    classes: dict[str, str] = {}
    for line in lines("sensitive_terms.txt"):
        group, _, terms = line.partition(":")
        for term in terms.split("|"):
            classes.setdefault(_key(term), group)
    written = sorted((_expression(term) for term in classes), key=lambda each: (-len(each), each))
    return pattern(rf"\b(?:{'|'.join(written)})(?:e?s)?\b", ignore_case=True), classes


_ENDED = pattern(_ENDINGS, ignore_case=True)
_LONGEST_WORD = 30


def terms(text: str) -> Iterator[Term]:
    """Yield the terms in a text from left to right, without overlaps."""
    listed, _ = _vocabulary()
    spans = [match.span() for match in listed.finditer(text)]
    spans += [(_word_start(text, match.start()), match.end()) for match in _ENDED.finditer(text)]
    last = 0
    for start, end in sorted(spans, key=lambda each: (each[0], -each[1])):
        whole = not (start and text[start - 1].isalnum()) and not (end < len(text) and text[end].isalnum())
        if start >= last and whole and (group := _group(text[start:end])):
            last = end
            yield Term(start, end, HEALTH if group in _HEALTH_CLASSES else BELIEF, group)


def _word_start(text: str, place: int) -> int:
    """Return where the word around a place begins, if it is no longer than a word can be."""
    floor = max(0, place - _LONGEST_WORD)
    while place > floor and text[place - 1].isalpha():
        place -= 1
    return place


def _group(written: str) -> str:
    """Return the class of a matched word, or nothing for an ordinary word or an acronym in small letters."""
    _, classes = _vocabulary()
    key = _key(written)
    for candidate in (key, key.removesuffix("s"), key.removesuffix("es")):
        if candidate in classes:
            return classes[candidate] if _as_cased(candidate, written) else ""
    if key.endswith("union"):
        return "union"
    return "" if key in _ORDINARY else "illness"


# Words that mean something else in small letters, and those that do in capitals.
_CASED = word_set(
    "add aids als me/cfs trump vox lega unite cree maya sami karen labour conservative conservatives democrat democrats "
    "republican republicans greens prep copt tatar tory apache hamas podemos rmt anc fdp me/cfs copd ibs pcos ckd bpd dvt cfs tbi ms mnd ms"
)


def _as_cased(key: str, written: str) -> bool:
    return key not in _CASED or written[0].isupper()


def _key(term: str) -> str:
    return " ".join(term.lower().replace("’", "'").replace("-", " ").split())


def _expression(key: str) -> str:
    import re

    return re.escape(key).replace(r"\ ", r"[\s-]").replace("'", "['’]")
