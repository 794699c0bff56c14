"""Whether a sensitive word is said of an identified person, by the sentence's dependencies.

A word is followed upwards: through the noun that carries it (diagnosis, treatment, member), to its possessor, to the
noun it explains, or to the verb whose subject or object has it. Each class of words has its own verbs, so that one who
studies, treats or sells what the word names is not said to have it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from interlock.dpe.pii import ties
from interlock.dpe.pii.lexicon import ILLNESS, STATES, Term
from interlock.dpe.pii.persons import ROLES, People

_MOST_STEPS = 8


def is_said(term: Term, doc: Any, people: People) -> bool:
    """Whether *term*, whose place counts in the text of *doc*, is said of a person of the passage *doc*."""
    words = [each for each in doc if term.start <= each.idx < term.end]
    if not words or _is_idiom(words[-1]):
        return False
    within = {each.i for each in words}
    tops = [each for each in words if each.head.i not in within or each.head.i == each.i]
    return any(_reaches(top, term.group, people, within) for top in tops)


def _is_idiom(word: Any) -> bool:
    rest = word.doc.text[word.idx + len(word) :]
    return rest.startswith(ties.LAUGHED_AT) or (word.lower_ in ties.SENSES and rest.startswith(ties.SENSES_IDIOM))


def _reaches(token: Any, group: str, people: People, within: set[int]) -> bool:
    """Climb from a word until a person has it, or nothing can."""
    carried = False
    for _ in range(_MOST_STEPS):
        if _is_denied(token):
            return False
        if token.lemma_.lower() not in ties.BY_PROFESSION and any(
            child.dep_ == "poss" and child.i not in within and people.is_person(child) for child in token.children
        ):
            return True
        if group == "illness" and _is_in_somebody(token, people):
            return True
        higher = _next(token, group, people, carried=carried)
        if isinstance(higher, bool):
            return higher
        token, carried = higher, True
    return False


def _is_in_somebody(illness: Any, people: People) -> bool:
    """Whether an illness is somebody's by a preposition: a tumour in Ann's lung, the depression of Lee Poe."""
    held = (each for word in illness.children if word.lower_ in {"in", "from", "of"} for each in word.children)
    return any(
        people.is_person(noun) or any(each.dep_ == "poss" and people.is_person(each) for each in noun.children)
        for noun in held
        if noun.dep_ == "pobj"
    )


def _next(token: Any, group: str, people: People, *, carried: bool) -> Any:
    """Return the word that carries *token*, or whether a person has it."""
    if token.pos_ == "VERB" and not carried:
        return _is_deed(token, group, people)
    if token.dep_ == "ROOT":
        return any(people.is_person(each) for each in token.children if each.dep_ in {"appos", "nsubj"})
    follow = _FOLLOWED.get(token.dep_)
    return follow is not None and follow(token, group, people)


def _from_conjunct(token: Any, _: str, people: People) -> Any:
    return token.head if token.head.pos_ not in {"VERB", "AUX"} else _subject_has(token.head, people)


def _from_modifier(token: Any, group: str, people: People) -> Any:
    if people.is_person(token.head):
        return token.pos_ != "PROPN" and group in ties.BEFORE_A_NAME
    return token.head if _carries(token.head, group) else False


def _from_apposition(token: Any, group: str, people: People) -> bool:
    if token.lemma_.lower() in ties.PROFESSIONS or token.head is token:
        return False
    return people.is_person(token.head) or (group in STATES and people_of(token.head, people))


def _from_complement(token: Any, group: str, people: People) -> bool:
    """A person is diabetic or a Muslim. A thing that is an illness says so of a person only by a diagnosis."""
    verb = token.head
    if token.lemma_.lower() in ties.PROFESSIONS or verb.lemma_ not in ties.BEING | ties.HAVING | ties.DONE_TO:
        return False
    explains = group == "illness" and verb.lemma_ == "be" and any(each.lemma_ == "a" for each in token.children)
    return _has(verb, people) and (not explains or any(each.lemma_.lower() in ties.FILED for each in verb.children))


def _from_object(token: Any, group: str, people: People) -> bool:
    return _is_filed(token.head, people) or _verb_gives(token.head, group, people, preposition="")


def _from_preposition(token: Any, group: str, people: People) -> Any:
    return _through_preposition(token.head, group, people)


def _from_subject(token: Any, group: str, people: People) -> bool:
    """Whether an illness that does something does it to a person."""
    verb = token.head
    affects = group in ILLNESS and verb.lemma_.lower() in ties.DONE_TO and not _is_denied(verb)
    return affects and _is_done_to(verb, people)


_MODIFIERS = ("compound", "amod", "nmod", "npadvmod", "poss", "advmod", "nummod")
_FOLLOWED: dict[str, Callable[[Any, str, People], Any]] = {
    "conj": _from_conjunct,
    **dict.fromkeys(_MODIFIERS, _from_modifier),
    **dict.fromkeys(("appos", "dep", "parataxis"), _from_apposition),
    **dict.fromkeys(("attr", "acomp", "oprd"), _from_complement),
    **dict.fromkeys(("dobj", "obj"), _from_object),
    **dict.fromkeys(("pobj", "pcomp"), _from_preposition),
    **dict.fromkeys(("nsubj", "nsubjpass"), _from_subject),
}


def _carries(noun: Any, group: str) -> bool:
    if len(noun) <= 2:  # hepatitis C, diabetes 2
        return True
    if noun.pos_ == "ADJ":
        return noun.lemma_.lower() in ties.APT
    low = noun.lemma_.lower()
    if low in ties.HUMAN | ties.SUFFERERS | ROLES - {"family"}:
        return _is_what_one_is(noun) and (group in STATES or low in ties.SUFFERERS)
    if low in ties.CARRIERS or (group in {"faith", "creed"} and low in ties.CONGREGATIONS):
        return True
    # A Jewish merchant is; a Jewish cookbook is not. What stands beside be says what somebody is.
    return group in STATES and _is_what_one_is(noun) and low.endswith(ties.HUMAN_ENDINGS)


def _is_what_one_is(noun: Any) -> bool:
    return noun.dep_ in {"attr", "appos", "oprd", "conj", "ROOT"} or (noun.dep_ == "pobj" and noun.head.lower_ == "as")


def people_of(noun: Any, people: People) -> bool:
    """Whether a noun is explained by a person's name: the nurse, Ann Roe."""
    return any(people.is_person(each) for each in noun.children if each.dep_ in {"appos", "compound"})


def _through_preposition(preposition: Any, group: str, people: People) -> Any:
    higher, word = preposition.head, preposition.lower_
    if higher.dep_ == "prep":
        return _through_preposition(higher, group, people)
    if word == "as" and group in STATES and _subject_has(higher, people):
        return True
    if higher.pos_ in {"NOUN", "PROPN", "NUM", "PRON"}:
        if people.is_person(higher) or people_of(higher, people):
            return word in {"with", "of", "on", "from", "in"} and (group != "party" or word in {"of", "from"})
        low = higher.lemma_.lower()
        away = higher.dep_ == "pobj" and higher.head.lower_ in {"off", "from"}  # off work with burnout
        other = low in ties.OTHERS and (word != "with" or not _is_what_one_is(higher))
        return higher if away or (low in ties.CARRIERS | ties.OTHERS and not other) else False
    if higher.pos_ == "ADJ":
        return higher if higher.lemma_.lower() in ties.APT else False
    return _verb_gives(higher, group, people, preposition=word)


def _verb_gives(verb: Any, group: str, people: People, *, preposition: str) -> bool:
    """Whether a verb ties its object, or what its preposition governs, to a person."""
    lemma = verb.lemma_.lower()
    if preposition == "as":  # as a diabetic, Ann may not: what is denied is the verb alone
        return group not in ILLNESS and (_subject_has(verb, people) or _is_done_to(verb, people))
    if _is_denied(verb) or (preposition == "with" and _has_others(verb)):
        return False
    if lemma == "be" and preposition:
        return preposition in ties.BEING_IN and _has(verb, people)
    if group not in ILLNESS | {"state"}:
        return lemma in ties.HOLDING.get(group, ties.HAVING) and _has(verb, people)
    if lemma in ties.DONE_TO and (_is_passive(verb) or _is_done_to(verb, people)):
        return not _is_passive(verb) or _subject_has(verb, people)
    loose = lemma == "have" and preposition and not (preposition == "for" and _has_care(verb))
    return lemma in ties.HAVING and not loose and _has(verb, people)


def _is_filed(verb: Any, people: People) -> bool:
    """Whether a verb's subject is a person's file: Ann's record shows it."""
    return verb.lemma_.lower() in ties.SAYING and any(
        each.lemma_.lower() in ties.FILES and (_is_in_somebody(each, people) or _is_possessed(each, people))
        for each in verb.children
        if each.dep_ == "nsubj"
    )


def _is_possessed(noun: Any, people: People) -> bool:
    return any(each.dep_ == "poss" and people.is_person(each) for each in noun.children)


def _has_care(verb: Any) -> bool:
    """Whether one has a treatment, which is for an illness: she had surgery for it."""
    return any(each.dep_ == "dobj" and each.lemma_.lower() in ties.CARRIERS for each in verb.children)


def _has_others(verb: Any) -> bool:
    """Whether a verb's object is somebody else: she manages patients with asthma."""
    return any(each.dep_ == "dobj" and each.lemma_.lower() in ties.OTHERS for each in verb.children)


def _is_done_to(verb: Any, people: People) -> bool:
    return next(_objects(verb, people), None) is not None


def _objects(verb: Any, people: People) -> Iterator[Any]:
    """Yield the persons that a verb is done to: its objects, those of its prepositions, and their possessors."""
    for child in verb.children:
        if child.dep_ in {"dobj", "dative", "obj"} or (
            child.dep_ in {"ccomp", "xcomp"} and verb.lemma_ in {"leave", "keep", "make"}
        ):
            yield from (
                each
                for each in (child, *child.children)
                if each.dep_ not in {"relcl", "amod"} and people.is_person(each)
            )
        elif child.dep_ in {"prep", "dative"} and child.lower_ in {"in", "from", "for", "to", "on", "with"}:
            held = [each for each in child.children if each.dep_ == "pobj"]
            yield from (each for noun in held for each in (noun, *noun.children) if people.is_person(each))


def _is_deed(verb: Any, group: str, people: People) -> bool:
    if group in {"observance", "intimate", "state"} or verb.tag_ in {"VBN", "JJ"}:
        return _has(verb, people)
    return False


def _has(verb: Any, people: People) -> bool:
    return not _is_denied(verb) and _subject_has(verb, people)


def _subject_has(verb: Any, people: People) -> bool:
    """Whether a verb's subject is a person; a verb without a subject has that of the verb above it."""
    for _ in range(_MOST_STEPS):
        subjects = [each for each in verb.children if each.dep_ in {"nsubj", "nsubjpass", "csubj"}]
        if subjects:
            return any(_stands_for(each, verb, people) for each in subjects)
        if verb.dep_ in {"acl", "relcl", "appos"} or (
            verb.dep_ in {"amod", "advcl"} and verb.head.pos_ in {"NOUN", "PROPN"}
        ):
            return people.is_person(verb.head) or people_of(verb.head, people)
        if verb.dep_ not in {"conj", "xcomp", "advcl", "ccomp", "pcomp", "prep", "acomp", "dep"} or verb.head is verb:
            return False
        if verb.dep_ == "xcomp" and any(people.is_person(each) for each in verb.head.children if each.dep_ == "dobj"):
            return True
        verb = verb.head
    return False


def _stands_for(subject: Any, verb: Any, people: People) -> bool:
    if subject.lower_ in {"who", "that", "which"} and verb.dep_ == "relcl":
        noun = verb.head
        return (
            people.is_person(noun) or people_of(noun, people) or (noun.dep_ == "appos" and people.is_person(noun.head))
        )
    if subject.lemma_.lower() in ties.FILED:
        return _is_in_somebody(subject, people) or any(
            people.is_person(each) for each in subject.children if each.dep_ == "poss"
        )
    related = [each for each in subject.children if each.dep_ in {"appos", "conj"}]
    return people.is_person(subject) or any(people.is_person(each) for each in related)


def _is_passive(verb: Any) -> bool:
    return (
        verb.tag_ == "VBN"
        and (
            any(each.dep_ in {"auxpass", "nsubjpass"} for each in verb.children)
            or verb.dep_ in {"acl", "advcl", "amod", "conj"}
        )
        and not any(each.dep_ == "dobj" and each.lemma_ == "have" for each in verb.children)
    )


def _is_denied(token: Any) -> bool:
    """Whether a word is denied, supposed or a manner of speaking."""
    return any(
        each.dep_ == "neg"
        or each.lower_ == "no"
        or each.lower_ in ties.ALMOST
        or (each.dep_ == "mark" and each.lower_ in ties.DOUBTED)
        for each in token.children
    )
