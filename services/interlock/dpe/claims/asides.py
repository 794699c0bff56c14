"""Non-restrictive relative clauses and appositions, which assert something of their own (SPEC-005 §3.4).

"Dragon, which was built by SpaceX, docked" makes two assertions. A restrictive clause without commas ("the video which
has four million views") only identifies its antecedent, and stays. A clause that may refer to more than the noun before
it stays too: ", which surprised analysts" may refer to the whole sentence.
"""

from __future__ import annotations

from typing import Any

from interlock.dpe.claims.wellformed import agrees, grammatical_number, is_alternative, is_finite, is_verb

_OPENING = frozenset({",", "(", "—", "–"})
_CLOSING = frozenset({",", ")", "—", "–", ".", ";", "!", ":"})
# Verbs after which, when its clause is about a thing. With other verbs it may refer to the whole sentence.
_OF_A_THING = frozenset(
    {"be", "have", "include", "contain", "offer", "provide", "feature", "cost", "belong", "comprise", "consist", "open",
     "begin", "start", "end", "serve", "host", "own", "run", "lie", "stand", "cover", "sell", "employ", "last", "date",
     "involve", "operate", "weigh", "measure", "use", "work", "aim"}
)  # fmt: skip
_DESCRIBING = frozenset({"a", "an", "the", "one", "his", "her", "its", "their"})


def is_aside(token: Any) -> bool:
    """Whether a token heads a non-restrictive relative clause that can stand alone."""
    if token.dep_ != "relcl" or not is_verb(token) or not is_finite(token) or not _is_set_off(token):
        return False
    pronoun = token.left_edge
    if pronoun.head != token or not _names(token.head):
        return False
    if pronoun.lower_ == "where":
        return any(c.dep_ in {"nsubj", "nsubjpass", "expl"} for c in token.children)
    subject = pronoun.dep_ in {"nsubj", "nsubjpass"} and pronoun.lower_ in {"who", "which"}
    of_a_thing = token.lemma_.lower() in _OF_A_THING or any(c.dep_ == "auxpass" for c in token.children)
    return subject and (pronoun.lower_ == "who" or of_a_thing) and agrees(token.head, token)


def copula(token: Any) -> str:
    """Return the copula for an apposition that describes a name, or "" if the token is none.

    "Marco Mengoni, a popular singer," asserts that he is one. "Paris, France" and lists of names are no descriptions.
    """
    if token.dep_ != "appos" or token.pos_ not in {"NOUN", "PROPN"} or not _is_set_off(token):
        return ""
    name = token.head
    first = token.left_edge
    listed = any(c.dep_ in {"conj", "cc"} for c in (*token.children, *name.children)) or is_alternative(name)
    if name.pos_ != "PROPN" or name.dep_ in {"conj", "appos"} or listed or first.lower_ not in _DESCRIBING:
        return ""
    if token.tag_ not in {"NN", "NNS", "NNP"} or any(c.dep_ == "appos" for c in token.children):
        return ""
    return "are" if name.tag_ == "NNPS" and grammatical_number(token) != "singular" else "is"


def antecedent(token: Any) -> list[Any]:
    """Return the antecedent of an aside: the phrase before it, without other asides."""
    name = token.head
    others = {t.i for c in name.subtree if c.dep_ in {"relcl", "appos", "acl"} and c != token for t in c.subtree}
    found = [t for t in name.subtree if t.i < token.left_edge.i and t.i not in others]
    while found and (found[-1].is_punct or found[-1].dep_ == "cc"):
        found.pop()
    while found and (found[0].is_punct or found[0].dep_ in {"cc", "preconj"}):
        found.pop(0)
    return found


def _is_set_off(token: Any) -> bool:
    """Whether punctuation sets an aside off on both sides, or the sentence ends after it."""
    before, after = token.left_edge.i - 1, token.right_edge.i + 1
    doc = token.doc
    if before < 0 or doc[before].text not in _OPENING:
        return False
    return doc[token.right_edge.i].text in _CLOSING or after >= len(doc) or doc[after].text in _CLOSING


def _names(noun: Any) -> bool:
    """Whether a noun can be an antecedent: a noun or a name outside a list."""
    listed = noun.dep_ == "conj" or any(c.dep_ == "conj" for c in noun.children)
    return noun.pos_ in {"NOUN", "PROPN"} and not listed
