"""Names: runs of capitalised words in a text, found by rules (SPEC-005 §5.2).

English also capitalises the first word of a sentence and whole headings. A list of words that are usually in lower case
tells these apart.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import NUMBER, SYMBOL, WORD, Lexeme, at, lex
from interlock.dpe.text.wordlists import lines, word_set

TITLES = word_set(
    "mr mrs ms miss dr prof professor sir dame lord lady president vice chairman chairwoman chair chairperson "
    "commissioner minister secretary senator governor mayor judge justice chancellor ambassador general colonel "
    "captain major lieutenant sergeant admiral king queen prince princess pope cardinal bishop archbishop "
    "reverend rev father saint st ceo cfo cto coo director officer inspector detective deputy representative "
    "congressman congresswoman councillor councilor baron baroness count duke duchess emperor empress sultan "
    "sheikh imam rabbi coach analyst author researcher former acting prime executive chief spokesman spokeswoman "
    "spokesperson attorney dear hi hello hey"
)
COMPANY_FORMS = word_set(
    "inc incorporated corp corporation ltd limited llc llp plc gmbh ag sa se nv bv co company group holdings holding"
)
_LONGEST_SHORT_HEAD = 4
_INNER = word_set("of de da di du des del della van von der den la le el al bin ibn for zu ter dos")
_LONGEST_UNIT = 2
_PRODUCT_TAILS = ("ql", "sql", "db", "js", "mq")
_SHORTEST_PRODUCT = 4
_ABBREVIATIONS = word_set(
    "mr mrs ms dr prof st sr jr inc corp ltd co no v vs u.s etc gen sen rep gov col capt lt sgt rev jan feb mar "
    "apr jun jul aug sep sept oct nov dec art fig"
)
_OF_A_COUNTRY = ("an", "ese", "ish", "ch", "iss", "ic", "ek", "i", "ine", "aq")
_OPENERS = frozenset('.!?:;"([“•*-–—#>|')


# Words that head the parts of an answer and seldom stand elsewhere.
_HEADS = word_set("cons upsides downsides drawbacks takeaways recap tldr caveats dos don'ts")
_PREFIXES = ("un", "in", "non", "re", "pre", "mis", "over", "under", "sub", "out")
_FORMS = (
    ("s", ("",)), ("es", ("",)), ("ies", ("y",)), ("ed", ("", "e")), ("ied", ("y",)), ("ing", ("", "e")), ("ly", ("",)),
    ("ions", ("", "e")), ("ion", ("", "e")), ("ations", ("e", "")), ("ation", ("e", "")), ("ments", ("",)), ("ment", ("",)),
    ("ness", ("",)), ("ant", ("",)), ("ers", ("", "e")), ("ier", ("y",)), ("ised", ("ise", "ize")), ("ising", ("ise", "ize")),
)  # fmt: skip
_SHORTEST_STEM = 3
COMMON_WORDS = frozenset(lines("common_words.txt")) | _HEADS


@cache
def plain(word: str) -> str:
    """Return a word without case, diacritics, possessive and inner dots: Müller's is muller, U.S. is us."""
    folded = "".join(part for part in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(part))
    return folded.removesuffix("'s").removesuffix("'").replace(".", "").replace("ß", "ss")


@dataclass(frozen=True, slots=True)
class Name:
    """A name and its token span. ``sure`` is false for a possible ordinary word with a capital."""

    words: tuple[str, ...]  # content words, normalised by ``plain``
    first: int
    last: int
    sure: bool


def _common_knowledge() -> tuple[dict[tuple[str, ...], str], frozenset[str]]:
    """Read the entities that need no source: the words of each name, mapped to the entity that it denotes."""
    entities: dict[tuple[str, ...], str] = {}
    for line in lines("common_knowledge.txt"):
        spellings = line.split("|")
        for spelling in spellings:
            words = tuple(
                plain(word) for word in spelling.replace("-", " ").split() if plain(word) not in {"and", "of", "the"}
            )
            entities.setdefault(words, plain(spellings[0]))
    return entities, frozenset(word for words in entities for word in words)


KNOWN, KNOWN_WORDS = _common_knowledge()


def root(word: str) -> str:
    """Return the base form of an adjective or plural of a known entity: french is france."""
    return KNOWN.get((word,), word)


def is_demonym(words: Sequence[str]) -> bool:
    """Whether a name only says to which country something belongs: *Russian*, *Dutch*, *Swiss*."""
    entity = KNOWN.get(tuple(words))
    return len(words) == 1 and entity not in {None, words[0]} and words[0].endswith(_OF_A_COUNTRY)


def is_form_of_common(word: str) -> bool:
    """Whether a lower-case word is a form of a common word: *taps*, *emptied*, *unsettled*, *deductions*."""
    return not forms_of(word).isdisjoint(COMMON_WORDS)


def forms_of(word: str) -> set[str]:
    """Return a lower-case word with what it may be a form of: *emptied* and *empty*, *subletting* and *sublet*."""
    stems = {word, *(word.removeprefix(prefix) for prefix in _PREFIXES if len(word) >= len(prefix) + _SHORTEST_STEM)}
    for ending, put in _FORMS:
        for one in [each for each in stems if each.endswith(ending)]:
            stem = one.removesuffix(ending)
            if len(stem) >= _SHORTEST_STEM:
                stems.update(stem + letter for letter in put)
                if stem[-1] == stem[-2]:
                    stems.add(stem[:-1])
    return stems


def opens_sentence(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a token is the first word of a sentence, a line, a quotation or a list item."""
    before = at(tokens, index - 1)
    if index == 0 or tokens[index].opens_line:
        return True
    if before.text == ".":
        word = at(tokens, index - 2)
        return not (word.low in _ABBREVIATIONS or (len(word.text) == 1 and word.capital and before.glued))
    return before.text in _OPENERS and not (before.text == "-" and before.glued)


def is_shouted(text: str) -> bool:
    """Whether a line is written in capitals, the letters of its units aside: *4 T-SHIRTS*, *FLOUR 375 g*."""
    words = [token.text for token in lex(fold(text)) if token.kind == WORD and len(token.text) > _LONGEST_UNIT]
    return bool(words) and all(word.isupper() for word in words)


def find_names(tokens: Sequence[Lexeme], taken: Sequence[bool]) -> list[Name]:
    """Return the names among tokens. ``taken`` marks the tokens of values, which are not part of names."""
    names: list[Name] = []
    index = 0
    headings = _headings(tokens)
    while index < len(tokens):
        end = _run_end(tokens, taken, index)
        if end == index:
            index += 1
            continue
        names.extend(_named(tokens, index, end, heading=headings[index]))
        index = end
    return names


def _headings(tokens: Sequence[Lexeme]) -> list[bool]:
    """Mark the tokens of lines in which nearly every word is capitalised, so that capitals carry no information."""
    marks = [False] * len(tokens)
    start = 0
    for index in range(1, len(tokens) + 1):
        if index < len(tokens) and not tokens[index].opens_line:
            continue
        words = [token for token in tokens[start:index] if token.kind == WORD and len(token.text) > 3]
        capitals = sum(token.capital for token in words)
        if len(words) >= 2 and capitals == len(words) and at(tokens, index - 1).text != ".":
            marks[start:index] = [True] * (index - start)
        start = index
    return marks


def _is_part(tokens: Sequence[Lexeme], taken: Sequence[bool], index: int) -> bool:
    return (
        index < len(tokens)
        and tokens[index].capital
        and not taken[index]
        and tokens[index].text not in {"I", "I'm", "I've", "I'll", "I'd"}
    )


def _run_end(tokens: Sequence[Lexeme], taken: Sequence[bool], index: int) -> int:
    """Return the end of the run of capitalised words that begins at a token, or the same index without one."""
    if not _is_part(tokens, taken, index):
        return index
    end = index + 1
    while True:
        token = at(tokens, end)
        if (token.opens_line and end < len(tokens)) or tokens[end - 1].low.endswith("'s"):
            return end
        if (_is_part(tokens, taken, end) and (not opens_sentence(tokens, end) or token.glued)) or (
            token.kind == NUMBER and token.glued and not taken[end]
        ):
            end += 1
        elif (
            token.text == "-" and token.glued and at(tokens, end + 1).glued and _joins_name(tokens, taken, end + 1)
        ) or (token.text in {"&", "'"} and _is_part(tokens, taken, end + 1)):
            end += 2
        elif (
            token.text == "."
            and _is_initial(tokens, end)
            and (_is_part(tokens, taken, end + 1) or at(tokens, end + 1).glued)
        ):
            end += 1
        elif _is_connected(tokens, taken, index, end):
            end += 1 + (at(tokens, end + 1).low == "the")
        else:
            return end


def _joins_name(tokens: Sequence[Lexeme], taken: Sequence[bool], index: int) -> bool:
    """Whether the token after a hyphen belongs to the name: Jean-Claude, GPT-4; not US-based."""
    return index < len(tokens) and not taken[index] and (tokens[index].capital or tokens[index].kind == NUMBER)


def _is_initial(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a dot belongs to an initial or a title: J. Smith, Dr. Smith, U.S."""
    word = at(tokens, index - 1)
    return tokens[index].glued and ((len(word.text) == 1 and word.capital) or word.low in TITLES)


def _is_connected(tokens: Sequence[Lexeme], taken: Sequence[bool], start: int, index: int) -> bool:
    """Whether a function word connects two parts of a name: Bank of America, Institute of Standards and Technology."""
    token = at(tokens, index)
    place = index + 1 + (at(tokens, index + 1).low == "the" and token.low == "of")
    if not _is_part(tokens, taken, place) or tokens[place].opens_line:
        return False
    inside = any(part.low in {"of", "for"} for part in tokens[start:index])
    return token.low in _INNER or (token.low == "and" and inside)


def _named(tokens: Sequence[Lexeme], first: int, last: int, *, heading: bool) -> Iterable[Name]:
    """Yield the name of a run, without an ordinary word that opens the sentence and without titles."""
    opening = opens_sentence(tokens, first)
    while first < last and (
        tokens[first].low in TITLES or tokens[first].text == "." or (opening and _is_ordinary(tokens[first]))
    ):
        opening = opening and not tokens[first].low not in TITLES
        first += 1
        while first < last and (tokens[first].low in _INNER or tokens[first].low in {"the", "and", "-", "&"}):
            first += 1
    while last > first and tokens[last - 1].text in {"-", "&", "'"}:
        last -= 1
    parts = [plain(token.text) for token in tokens[first:last] if token.kind != SYMBOL and not is_small(token)]
    words = tuple(word for word in parts if word)
    if not words:
        return
    ordinary = all(word in COMMON_WORDS or word.isdigit() for word in words)
    if heading and ordinary:
        return
    single = len(words) == 1
    sure = not ordinary or (not single and not heading)
    yield Name(joined_initials(words), first, last, sure)


def _is_ordinary(token: Lexeme) -> bool:
    low = token.low.removesuffix("'s")
    return (low in COMMON_WORDS or len(low) == 1 or "'" in low) and not (token.text.isupper() and len(token.text) > 1)


def is_small(token: Lexeme) -> bool:
    return (token.low in _INNER or token.low in {"the", "and"}) and token.kind == WORD and not token.capital


def significant(tokens: Sequence[Lexeme]) -> tuple[str, ...]:
    """Return the distinctive words of a name, normalised and without titles. U.S. is one word."""
    words = [
        plain(token.text)
        for token in tokens
        if token.kind != SYMBOL and token.low not in {"the", "of", "and", "for", "a", "in"}
    ]
    named = tuple(word for word in words if word and word not in TITLES)
    return joined_initials(named or tuple(word for word in words if word))


def joined_initials(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return adjacent single letters joined into one abbreviation: U, S is us."""
    if len(words) > 1 and all(len(word) == 1 and word.isalpha() for word in words):
        return ("".join(words),)
    return words


def shorter_names(words: Sequence[str]) -> Iterator[tuple[str]]:
    """Yield the identifiers that a product of one word goes by: ``postgres`` for PostgreSQL, ``mongo`` for MongoDB."""
    for tail in _PRODUCT_TAILS if len(words) == 1 else ():
        short = words[0].removesuffix(tail)
        if short != words[0] and len(short) >= _SHORTEST_PRODUCT:
            yield (short,)


def is_short_head(tokens: Sequence[Lexeme], first: int, last: int) -> bool:
    """Whether a word of few letters is the whole head of a column, *Pts: 6* or *Pos; Team; Pts*, and so no name of a thing."""
    if last - first != 1 or len(tokens[first].text) > _LONGEST_SHORT_HEAD or tokens[first].text.isupper():
        return False
    before, after, cell = (at(tokens, first - 1).text, at(tokens, last).text, at(tokens, last + 1))
    in_head = before in {"", ";"} and after in {"", ";"} and before + after != ""
    return in_head or (before in {"", ";"} and after == ":" and cell.kind == NUMBER)
