"""Wording of claims: their type, whether they are checkable, and their form as NLI hypotheses (SPEC-005 §3.3).

The type is a label, not a filter. A claim is unchecked only when its words are all in a closed list of words about the
answer itself (``META_WORDS``), or when it only offers, asks, thanks or declines. Opinions, instructions and remarks
with any other content are checked like facts (reliability.md A-25).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from interlock.dpe.document import ClaimType
from interlock.dpe.text.wordlists import word_set

SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
META_WORDS = word_set(
    """
    above additional afraid again agree ahead also answer any anything apologize apology appreciate article ask
    assist assistance assistant available base below brief bullet bye certainly clarification clarify comment
    concise conclude conclusion contact context continue core course cover describe detail directly discuss
    document else explain explanation feel find follow following free further give glad good goodbye happy hello
    help helpful here hesitate hi hope how inform information instruction just key know let like look main many
    mention message more most much need note offer ok okay outline overview paragraph passage piece please
    pleasure point possible previous previously proceed provide query question quick read reader regard request
    respond response say section see share short show simple simply solely something sorry source specific
    specifically sum summarize summary sure talk tell text thank thanks then thing today topic try unable
    understand want way welcome what when where which why wish wonder
    """
)
_META_VERBS = word_set(
    """
    answer apologize appreciate ask assist base be can clarify contact could discuss do elaborate explain feel
    find give have help hesitate hope know let like may might need offer provide share summarize thank understand
    want will wish would
    """
)
_SOURCES = word_set(
    """
    article context data document excerpt fact information material passage source text
    """
)
_TELLING = word_set(
    """
    address answer contain cover discuss give include indicate mention provide say specify state tell
    """
)
BARE_VERBS = word_set(
    """
    be can could do get go have make may might must shall should will would
    """
)
_OPINION = re.compile(
    r"""
    \b(?:I|we)\s+(?:think|believe|feel|suspect|guess|recommend|suggest|prefer|would\s+say)\b
    | \bin\s+(?:my|our)\s+(?:\w+\s+)?(?:opinion|view)\b
    | \bit\s+seems\b | \barguably\b
    | \b(?:best|worst|beautiful|amazing|excellent|terrible|wonderful|great|awful|impressive|fascinating|interesting
        |boring|remarkable|poor|outstanding)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_META = re.compile(
    r"""
    \b(?:
      as\s+(?:mentioned|noted|stated|discussed|described|explained)\s+(?:above|earlier|before|previously)
    | in\s+(?:this|my|the\s+above)\s+(?:answer|response|summary)
    | (?:based|according)\s+(?:on|to)\s+the\s+(?:provided|given)?\s*
      (?:context|facts?|information|documents?|passages?|text)
    | here\s+(?:is|are) | I\s+hope | let\s+me\s+know | feel\s+free
    | I(?:'m|\s+am)\s+(?:sorry|unable|happy|glad|not\s+able) | I\s+(?:cannot|can't|can\s+not)
    )\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LEAD = re.compile(
    r"""
    (?:
      (?:I|we)\s+(?:think|believe|feel|suspect|guess|would\s+say)(?:\s+that)?
    | in\s+(?:my|our)\s+(?:\w+\s+)?(?:opinion|view),?
    | (?:as|it\s+is)\s+(?:\w+\s+)?(?:mentioned|noted|stated|reported|described)
      (?:\s+(?:above|earlier|before|previously))?(?:\s+that|,)
    | based\s+on\s+the\s+(?:\w+\s+)?(?:context|facts?|information|documents?|passages?|text)(?:\s+provided)?,?
    | according\s+to\s+the\s+(?:\w+\s+)?(?:context|facts?|documents?|passages?|text|source),?
    | (?:the|this)\s+(?:context|document|passage|text|source|article)\s+(?:states|says|mentions|notes|reports)\s+that
    | (?:please\s+)?note\s+that
    | it(?:'s|\s+is)\s+(?:important\s+to\s+note|worth\s+(?:noting|mentioning))\s+that
    | (?:in\s+short|in\s+summary|to\s+summarize|overall|additionally|furthermore|moreover|however|also|therefore|finally
        |in\s+addition|in\s+conclusion|for\s+(?:example|instance)|sure|yes|certainly|of\s+course
        |no|yep|yeah|nope|done|okay|ok|right|correct|exactly|great|perfect|unfortunately|actually)[,!:]
    )\s+
    """,
    re.IGNORECASE | re.VERBOSE,
)

_PARTICLE = re.compile(
    r"""
    (?:no|nope|yes|yep|yeah|sure|right|correct|exactly|okay|ok|done|not\s+(?:any\s?more|yet|really|quite|exactly|necessarily))
      (?:[,:]|\s[—–-])\s+
    | not\s+(?:all|every|everyone|everybody|everything|each|always|everywhere|both)(?:\s+of\s+\w+(?:\s+\w+)?|\s+\w+)?(?:[:]|\s[—–-])\s+
    | not\s+(?:\w+\s+){0,2}[\w:.]*\d[\w:.]*(?:\s+\w+)?\s*\s[—–-]\s+
    """,
    re.IGNORECASE | re.VERBOSE,
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SEPARATOR = re.compile(r"([,.])")
_PARTED_FIGURE = re.compile(r"\d{1,3}(?:,\d{3}){1,4}|\d{1,9}\.\d{1,9}")
_PERCENT = re.compile(r"(?<=\d)\s?(?:percent|per\s?cent)\b", re.IGNORECASE)


def plain_figures(text: str) -> str:
    """Return a text with its figures in one notation, 2600 and 15%, so that premise and hypothesis agree."""
    return _PERCENT.sub("%", _THOUSANDS.sub("", text))


def unanswered(text: str) -> str:
    """Return a claim without the particle that answers a question before it: the *no* of *No, deploys go on* negates nothing in it."""
    particle = _PARTICLE.match(text)
    return text[particle.end() :] if particle and particle.end() < len(text) else text


def uncut(premise: str, claim_text: str) -> str:
    """Return a premise with the claim's figures rejoined where spaces split them: 3, 500; 31. 8."""
    for figure in dict.fromkeys(_PARTED_FIGURE.findall(claim_text)):
        if figure not in premise:
            premise = premise.replace(_SEPARATOR.sub(r"\1 ", figure), figure)
    return premise


def hypothesis(text: str) -> str:
    """Return the assertion of a claim without introductory words, as a sentence for the NLI model."""
    lead = _lead(text)
    while lead and lead.end() < len(text):
        text = text[lead.end() :]
        lead = _lead(text)
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text.rstrip(" ,;:") + "."


def _lead(text: str) -> re.Match[str] | None:
    return _LEAD.match(text) or _PARTICLE.match(text)


def is_content_word(token: Any) -> bool:
    """Whether a token is a content word."""
    content = token.pos_ in {"NOUN", "VERB", "ADJ", "ADV", "NUM", "PROPN", "X", "INTJ", "SYM"}
    return content or token.like_num or token.like_url or token.like_email


def is_about_itself(tokens: Sequence[Any]) -> bool:
    """Whether a clause without names and values only asks, declines or offers to say more.

    A question to the reader or a refusal may contain any nouns ("Would you like to hear about the tower?", "I can't
    advise on weapons"). An offer may contain them only after "about" ("I can give more details about the tower"): any
    other offer, such as a refund, is a claim.
    """
    if _denies_content(tokens):
        return True
    verbs = [token for token in tokens if token.pos_ in {"VERB", "AUX"}]
    if not verbs or any(token.lemma_.lower() not in _META_VERBS for token in verbs):
        return False
    subjects = [token for token in tokens if token.dep_ in SUBJECTS]
    if tokens[-1].text == "?":
        return all(token.lower_ in {"i", "we", "you"} for token in subjects)
    if any(token.dep_ == "neg" or token.lower_ in {"unable", "sorry"} for token in tokens):
        return bool(subjects) and all(token.lower_ == "i" for token in subjects)
    topics = {t.i for token in tokens if token.lower_ in {"about", "regarding"} for t in token.subtree}
    rest = {token.lemma_.lower() for token in tokens if token.i not in topics and is_content_word(token)}
    return bool(topics) and rest <= META_WORDS | BARE_VERBS


def _denies_content(tokens: Sequence[Any]) -> bool:
    subjects = [token for token in tokens if token.dep_ in SUBJECTS]
    verbs = [token for token in tokens if token.pos_ == "VERB" and token.dep_ not in {"amod", "acl"}]
    return (
        len(subjects) == 1
        and subjects[0].lemma_.lower() in _SOURCES
        and any(token.dep_ == "neg" and token.head.lemma_.lower() in _TELLING for token in tokens)
        and all(token.lemma_.lower() in _TELLING for token in verbs)
    )


def classify_type(text: str, tokens: Sequence[Any], *, checked: bool, code: bool) -> ClaimType:
    """Return the type of a claim. Checkability is decided elsewhere."""
    if not checked or text.endswith("?") or _META.search(text):
        return ClaimType.META
    if _OPINION.search(text):
        return ClaimType.OPINION
    if code or _is_instruction(tokens):
        return ClaimType.PROCEDURAL
    return ClaimType.FACTUAL


def _is_instruction(tokens: Sequence[Any]) -> bool:
    """Whether the clause is an imperative, or tells the reader what to do."""
    for token in tokens:
        if (
            token.tag_ == "VB"
            and not any(c.dep_ in SUBJECTS | {"aux"} for c in token.children)
            and (token.dep_ == "ROOT" or (token.dep_ == "conj" and token.head.dep_ == "ROOT"))
        ):
            return True
        if (
            token.dep_ in SUBJECTS
            and token.lower_ == "you"
            and any(c.lower_ in {"should", "must", "need", "can"} for c in (*token.head.children, token.head))
        ):
            return True
    return False
