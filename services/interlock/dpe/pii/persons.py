"""Who in a parsed passage is an identified person: by name, by a tie to somebody, or by a pronoun for one of them.

The NER model misses names of many languages, so a run of proper nouns that is no organisation's counts too.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from interlock.dpe.text.names import COMMON_WORDS, plain
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import lines, word_set

ROLES = word_set(
    "wife husband partner spouse son daughter child kid mother mom mum father dad brother sister aunt uncle cousin niece "
    "nephew grandmother grandfather grandma grandpa granddaughter grandson stepson stepdaughter fiance fiancee girlfriend "
    "boyfriend ex friend neighbour neighbor colleague coworker boss manager supervisor assistant secretary flatmate roommate "
    "housemate landlord landlady tenant lodger patient client customer employee applicant candidate claimant insured student pupil "
    "teacher tutor trainer coach cook nanny cleaner driver nurse doctor lawyer accountant brother-in-law sister-in-law mate "
    "mother-in-law father-in-law great-nephew great-niece godson godfather stepfather stepmother twin volunteer donor witness family parent sibling teammate team-mate classmate guest twin-brother"
)
_PRONOUNS = word_set("he she him her his hers himself herself")
_ADDRESSED, _GREETINGS = word_set("you your"), ("dear", "hello", "hi ", "mr", "mrs", "ms", "dr")
_REACH = 40  # words
_MINE = word_set("my our your")
NO_NAMES = word_set(
    "party union university college school church cathedral parish council hospital clinic centre center institute street road avenue "
    "company inc ltd gmbh corp bank court ministry department research relief services service foundation act day games bay states kingdom city county "
    "times herald association society committee congress parliament senate house team club league museum library "
    "theatre hotel airport station river mountain island lake sea north south east west new san los la el st saint "
    "cross fund group agency office board bureau police army navy press news radio award prize festival conference "
    "programme program project plan study trial disease syndrome disorder virus friday monday tuesday wednesday "
    "thursday saturday sunday january february july september october november december"
)
_ANIMALS = word_set(
    "dog cat labrador horse pony vet pet hamster rabbit puppy kitten cow sheep parrot poodle terrier retriever spaniel "
    "shepherd guinea tortoise budgie plant plants cattle"
)
_OFFICES = word_set(
    "senator president prime minister chancellor governor congressman congresswoman representative mp mep secretary mayor "
    "councillor premier pope bishop archbishop cardinal rabbi imam ayatollah priest pastor reverend father monk nun "
    "king queen emperor empress prince princess saint st prophet politician candidate leader lawmaker deputy "
    "ambassador speaker chairman chairwoman"
)
_OF_OLD = word_set("king queen emperor empress saint st pharaoh prophet tsar kaiser")
_OLD_YEAR = pattern(r"\b1[0-8]\d\d\b|\b19[0-2]\d\b")


class People:
    """The identified persons of one parsed passage."""

    def __init__(self, doc: Any, taken: Sequence[tuple[int, int]]) -> None:
        """Read a parsed passage; words within *taken*, spans of sensitive terms, are nobody's name."""
        self._taken = {token.i for start, end in taken for token in doc if start <= token.idx < end}
        # A passage that comes again has its parse.
        known, key = doc.user_data, ("interlock.people", frozenset(self._taken))
        if key not in known:
            known[key] = frozenset(token.i for token in doc if self._is_name(token))
        self._named: frozenset[int] = known[key]

    def __bool__(self) -> bool:
        """Whether anybody is named."""
        return bool(self._named)

    def is_person(self, token: Any, *, depth: int = 2) -> bool:
        """Whether a word stands for an identified person: a name, my neighbour, Tom's wife, or he after a name."""
        if token.i in self._named:
            return True
        if token.lower_ in _PRONOUNS:
            return any(each < token.i for each in self._named) or (depth > 0 and self._told_before(token))
        if token.lower_ in _ADDRESSED:
            return self._is_greeted(token)
        if not depth or token.lemma_.lower() not in ROLES:
            return False
        return any(self._identifies(child, depth) for child in token.children)

    def _identifies(self, child: Any, depth: int) -> bool:
        if child.dep_ == "poss":
            return child.lower_ in _MINE or self.is_person(child, depth=depth - 1)
        if child.dep_ == "prep" and child.lower_ == "of":
            return any(self.is_person(each, depth=depth - 1) for each in child.children if each.dep_ == "pobj")
        return child.dep_ in {"appos", "compound", "nmod"} and child.i in self._named

    def _is_greeted(self, token: Any) -> bool:
        """Whether a letter's first words name whom it calls you."""
        before = (token.doc[max(0, each - 2) : each].text.lower() for each in self._named if each < token.i)
        return any(words.startswith(_GREETINGS) for words in before)

    def _told_before(self, token: Any) -> bool:
        """Whether my neighbour or Ann's son stands in the words before a pronoun."""
        before = (each for each in token.doc[max(0, token.i - _REACH) : token.i] if each.lemma_.lower() in ROLES)
        return any(
            child.dep_ == "poss" and (child.lower_ in _MINE or child.i in self._named)
            for each in before
            for child in each.children
        )

    def _is_name(self, token: Any) -> bool:
        if token.i in self._taken or token.pos_ != "PROPN" or len(token) < 2 or not token.text[0].isupper():
            return False
        run = list(_run(token, self._taken))
        words = [plain(each.text) for each in run]
        if any(word in NO_NAMES for word in words[1:]) or words[0] in NO_NAMES - {"st", "saint"} or _is_animal(token):
            return False
        if all(word in COMMON_WORDS for word in words) and not titled(token):
            return False
        determined = any(each.dep_ == "det" for each in token.children)
        return token.ent_type_ == "PERSON" or titled(token) or (not determined and self._looks_named(token, run))

    def _looks_named(self, token: Any, run: Sequence[Any]) -> bool:
        if len(run) > 3 or any(not each.text[0].isupper() or (each.text.isupper() and len(each) > 1) for each in run):
            return False
        return token.ent_type_ == "" or (len(run) > 1 and token.ent_type_ in {"ORG", "GPE", "FAC", "WORK_OF_ART"})


def _run(token: Any, taken: set[int]) -> Iterator[Any]:
    """Yield the neighbouring proper nouns of a word, with itself."""
    doc, first, last = token.doc, token.i, token.i
    while first and doc[first - 1].pos_ == "PROPN" and first - 1 not in taken and not doc[first - 1].text.endswith("."):
        first -= 1
    while last + 1 < len(doc) and doc[last + 1].pos_ == "PROPN" and last + 1 not in taken:
        last += 1
    yield from doc[first : last + 1]


_TITLED = word_set("mr mrs ms miss mx dr prof professor sister brother uncle aunt auntie grandpa grandma cousin")


def titled(token: Any) -> bool:
    """Whether a title stands right before a word or before the name that it ends."""
    before = [token.doc[place] for place in range(max(0, token.i - 3), token.i)]
    return any(plain(each.text) in _TITLED and each.text[0].isupper() for each in before[-2:])


def _is_animal(token: Any) -> bool:
    near = token.doc[max(0, token.i - 3) : token.i + 4]
    return any(each.lower_ in _ANIMALS for each in near if each.sent == token.sent)


@cache
def _public() -> frozenset[str]:
    return frozenset(line.lower() for line in lines("public_figures.txt"))


def is_public(sentence: Any, *, role_counts: bool) -> bool:
    """Whether a sentence is about a holder of public office, or of somebody long dead.

    What such a person stands for is made public by the office (GDPR Art. 9(2)(e)); *role_counts* is for that. The dead
    have no personal data (recital 27): a year before 1930, a king or a saint.
    """
    text, words = sentence.text, {plain(each.text) for each in sentence if each.text[:1].isupper()}
    if _OLD_YEAR.search(text) or words & _OF_OLD:
        return True
    low = text.lower()
    named = any(name in low for name in _public())
    return named or (role_counts and bool({each.lower_.strip(".") for each in sentence} & _OFFICES))
