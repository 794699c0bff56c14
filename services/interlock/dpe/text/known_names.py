"""Known names: which names a body of text contains (SPEC-005 §5.2)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise

from interlock.dpe.text.lexing import SYMBOL, WORD, Lexeme
from interlock.dpe.text.names import (
    COMMON_WORDS,
    COMPANY_FORMS,
    KNOWN,
    KNOWN_WORDS,
    TITLES,
    is_demonym,
    is_small,
    plain,
    root,
)

_SPELLED_ALIKE = 0.8
_SHORT_NAME = 5
_WORDS_OF_A_SHORTENED, _SHORTEST_SHORTENED, _LONGEST_SHORTENED = 2, 3, 4
_SHORTEST_PLURAL = 3  # letters of *MPs*
_VOWELS = frozenset("aeiouy")
_ENDINGS = ("ians", "ian", "ans", "an", "ese", "ish", "ists", "ist", "ism", "ic", "ites", "ite", "es", "s", "n", "i")


@dataclass(frozen=True)
class KnownNames:
    """The words of a body of text, its pairs of neighbouring words, and its abbreviations."""

    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    abbreviations: frozenset[str]
    written: frozenset[str] = field(default=frozenset())

    @staticmethod
    def of(texts: Iterable[Sequence[Lexeme]]) -> "KnownNames":
        """Collect the known names of tokenised texts."""
        words: set[str] = set()
        pairs: set[tuple[str, str]] = set()
        abbreviations: set[str] = set()
        written: set[str] = set()
        for tokens in texts:
            significant = [token for token in tokens if token.kind != SYMBOL and not is_small(token)]
            row = [root(plain(token.text)) for token in significant]
            words.update(row)
            words.update(plain(token.text) for token in significant)
            pairs.update(_neighbours(tokens))
            abbreviations.update(_abbreviations(significant))
            written.update(plain(token.text) for token in significant if token.text.isupper() and len(token.text) > 1)
            written.update(plain(token.text[:-1]) for token in significant if _is_plural_of_capitals(token.text))
            written.update(_dotted(tokens))
        return KnownNames(frozenset(words | written), frozenset(pairs), frozenset(abbreviations), frozenset(written))

    @staticmethod
    def joined(parts: Iterable["KnownNames"]) -> "KnownNames":
        """Return the known names of several texts, each of which was read by itself."""
        all_parts = list(parts)
        return KnownNames(
            frozenset[str]().union(*(part.words for part in all_parts)),
            frozenset[tuple[str, str]]().union(*(part.pairs for part in all_parts)),
            frozenset[str]().union(*(part.abbreviations for part in all_parts)),
            frozenset[str]().union(*(part.written for part in all_parts)),
        )

    def knows(self, words: Sequence[str]) -> bool:
        """Whether the text contains a name: in full, by surname, by abbreviation or by long form."""
        words = [word for word in words if word not in TITLES and word not in COMPANY_FORMS] or list(words)
        rooted = [root(word) for word in words]
        if len(words) == 1:
            return self._has(words[0]) or words[0] in self.abbreviations or KNOWN.get((words[0],)) in self.words
        initials = "".join(word[0] for word in words)
        if initials in self.written and len(initials) > 1:
            return True
        missing = [
            word for word, origin in zip(words, rooted, strict=True) if not self._has(word) and origin not in self.words
        ]
        if missing and self._spelled_out(missing, words):
            return True
        if missing:
            middle = len(words) > 2 and set(missing) <= set(words[1:-1]) and self._near(rooted[0], rooted[-1])
            generic = all(word in COMMON_WORDS for word in missing) and not all(word in COMMON_WORDS for word in words)
            return middle or generic or self._known_alias(tuple(words)) or self._written_in_full(words)
        return all(self._near(one, other) for one, other in pairwise(rooted)) or self._known_alias(tuple(words))

    def side_by_side(self, first: Sequence[str], then: Sequence[str]) -> bool:
        """Whether the text has two names that stand side by side, of which one surely ends where the other begins.

        A known entity does, and a name of several words that the text has as it is: of two single words nobody can tell whether
        they are a name made of two others'.
        """
        if tuple(first) in KNOWN:
            return self.knows(then)
        if is_demonym(then):
            return self.knows(first)
        whole = any(len(part) > 1 and self._has_in_a_row(part) for part in (first, then))
        return whole and self.knows(first) and self.knows(then)

    def _has_in_a_row(self, words: Sequence[str]) -> bool:
        return all(map(self._has, words)) and all(self._near(root(one), root(other)) for one, other in pairwise(words))

    def _spelled_out(self, missing: Sequence[str], words: Sequence[str]) -> bool:
        """Whether an abbreviation in the text stands for the missing words: Artificial Intelligence Act, AI Act."""
        first = words.index(missing[0])
        initials = "".join(word[0] for word in missing)
        return (
            len(missing) > 1 and list(words[first : first + len(missing)]) == list(missing) and initials in self.written
        )

    def _written_in_full(self, words: Sequence[str]) -> bool:
        """Whether a name of two words shortens one of the text, both by their letters: *Det Tigers*, *Man Utd*."""
        if len(words) != _WORDS_OF_A_SHORTENED or not any(len(word) <= _LONGEST_SHORTENED for word in words):
            return False
        return any(_shortens(words[0], one) and _shortens(words[1], other) for one, other in self.pairs)

    def _known_alias(self, words: tuple[str, ...]) -> bool:
        """Whether the text uses another name of the same known entity: United States for U.S."""
        entity = KNOWN.get(words)
        return entity is not None and entity in self.words

    def _near(self, one: str, other: str) -> bool:
        return (one, other) in self.pairs or (other, one) in self.pairs or one == other

    def _has(self, word: str) -> bool:
        return (
            word in self.words
            or any(
                word.endswith(ending) and len(word) - len(ending) >= 4 and word.removesuffix(ending) in self.words
                for ending in _ENDINGS
            )
            or any(word + ending in self.words for ending in ("s", "n", "an", "ian") if len(word) >= 4)
            or (word.endswith("s") and word[:-1] in self.written)  # MPs, where one MP is named
        )


def _neighbours(tokens: Sequence[Lexeme]) -> Iterator[tuple[str, str]]:
    """Yield adjacent words, and words up to three apart if no comma or conjunction separates them."""
    recent: list[tuple[str, int]] = []
    part = 0
    for token in tokens:
        if token.kind == SYMBOL or token.low in {"and", "or"}:
            part += token.text not in {"-", "'", ".", "&", "(", ")"}
        elif not is_small(token):
            word = root(plain(token.text))
            yield from (
                (other, word) for place, (other, its) in enumerate(recent) if its == part or place == len(recent) - 1
            )
            recent = [*recent[-2:], (word, part)]


def _abbreviations(tokens: Sequence[Lexeme]) -> set[str]:
    """Return the initials of every run of two to seven capitalised words."""
    found: set[str] = set()
    run = ""
    for token in tokens:
        if token.capital:
            run += plain(token.text)[:1]
            found.update(run[-length:] for length in range(2, min(7, len(run)) + 1))
        else:
            run = ""
    return found


def _is_plural_of_capitals(written: str) -> bool:
    """Whether a word is the plural of an abbreviation: MPs, GPs, NGOs."""
    return written.endswith("s") and len(written) >= _SHORTEST_PLURAL and written[:-1].isupper()


def _shortens(word: str, whole: str) -> bool:
    """Whether a word is another, its beginning, or its first and last letters with some between them: *Univ*, *Utd*, *Bldg*."""
    if word == whole:
        return True
    if len(word) < _SHORTEST_SHORTENED or len(word) >= len(whole):
        return False
    rest = iter(whole)
    return whole.startswith(word) or (word[-1] == whole[-1] and word[0] == whole[0] and all(c in rest for c in word))


def _dotted(tokens: Sequence[Lexeme]) -> set[str]:
    """Return the abbreviations written with dots: U.S., N.A.T.O."""
    found: set[str] = set()
    run = ""
    for token in tokens:
        if token.kind == WORD and token.capital and len(token.text) == 1 and (not run or token.glued):
            run += token.low
        elif token.text != "." or not token.glued:
            found.update({run} if len(run) > 1 else ())
            run = ""
    return found | ({run} if len(run) > 1 else set())


def may_be_one(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two names may denote one entity."""
    shorter, longer = sorted((one, other), key=len)
    roots, others = {root(word) for word in one}, {root(word) for word in other}
    known, known_other = KNOWN.get(tuple(one)), KNOWN.get(tuple(other))
    initials, other_initials = "".join(word[0] for word in one), "".join(word[0] for word in other)
    return (
        roots <= others
        or others <= roots
        or (known is not None and known == known_other)
        or (len(one) > 1 and initials in other)
        or (len(other) > 1 and other_initials in one)
        or all(any(_are_spelled_alike(word, rival) for rival in longer) for word in shorter)
    )


def _are_spelled_alike(word: str, rival: str) -> bool:
    """Whether two words are spellings of one: Fed and Federal, Troyes and Troues; not Austria and Australia.

    Words of five letters may differ in one inner vowel: Mursi and Morsi, not Susan and Susie.
    """
    if word in KNOWN_WORDS and rival in KNOWN_WORDS:
        return False
    if min(len(word), len(rival)) == 1:
        return word[0] == rival[0]  # an initial
    if len(word) >= 3 and len(rival) >= 3 and (word.startswith(rival[:4]) or rival.startswith(word[:4])):
        return True
    if _differ_in_a_vowel(word, rival):
        return True
    return (
        min(len(word), len(rival)) >= 6 and SequenceMatcher(None, word, rival, autojunk=False).ratio() >= _SPELLED_ALIKE
    )


def _differ_in_a_vowel(word: str, rival: str) -> bool:
    other = [(one, two) for one, two in zip(word, rival, strict=False) if one != two]
    inside = word[:1] == rival[:1] and word[-1:] == rival[-1:]
    return len(word) == len(rival) == _SHORT_NAME and inside and len(other) == 1 and set(other[0]) <= _VOWELS
