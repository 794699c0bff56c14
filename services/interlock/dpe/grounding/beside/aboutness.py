"""Whether any source is about what an answer says (ATT-8, SPEC-003 §13.2).

A conversation keeps its sources. Once one tool was called, every later answer has sources, and most of them are about
something else: why bread rises is not in a table of units. In the mode ``auto`` such an answer is open, as one without
any source is. Only sources from before the user's last words can be beside the point: what was looked up for this very
question is what the answer is judged against.

An answer is about the sources when it or its question is near one in meaning, shares a name, an exact figure or most of
its words with them, or only refers back to something that is. So an invented name of the company that the sources are
about is still judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.request import ANSWERED, USER, Request, SaidText
from interlock.dpe.text.known_names import KnownNames
from interlock.dpe.text.names import KNOWN, find_names
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import names_known, taken_by_values

NEAR = 0.50
"""Cosine from which a source is about a text."""

NEAR_WITH_A_WORD = 0.35
"""Cosine from which a source that shares a content word with a text is about it."""

MOST_WORDS = 0.5
"""Share of a text's content words from which sources that have them are about it."""

_FEWEST_SHARED = 2
_FEWEST_TOLD = 3
_MOST_TEXTS = 8
_EXACT_DIGITS = 3
_EXPLETIVE = pattern(
    r"\b(?:is|was|does|do|did|will|would|can)\s+it\s+(?:\p{L}+\s+){0,2}(?:to|that|for|if)\s", ignore_case=True
)
"""*Is it safe to swim?*: the pronoun stands for nothing."""

_REFERS_BACK = pattern(
    r"\b(?:it|its|itself|they|them|their|theirs|he|she|him|his|her|hers|there|ones)\b"
    r"|\bthe\s+(?:same|others?|former|latter|rest)\b|\bthe\s+(?:first|second|third|last)\s*(?:one\b|[?.!,]|\z)"
    r"|\b(?:this|that|these|those)\s*(?:[?.!,:;]|\z|(?:is|was|are|were|one|means?|works?|would|will|can)\b)"
    r"|\b(?:about|with|of|for|do|than|like|is|was|are|were|does|did|at|in|on|from|to|explain|use)\s+(?:this|that|these|those)\b"
    r"|\A\s*(?:and|or|but|so|then)\b|\A\s*(?:how\s+many|how\s+much|what|which)(?:\s+\p{L}+){1,2}\s*\?\s*\z|\bwhat\s+else\b|\bany(?:thing)?\s+(?:other|more|else)\b",
    ignore_case=True,
)
_OF_THE_HOUSE = pattern(
    r"\b(?:do|does|can|will|are|is)\s+(?:you|your\s+\p{L}+)\s+(?:\p{L}+ly\s+|also\s+|still\s+|guys\s+)?(?:have|offer|sell|ship|accept|deliver"
    r"|provide|charge|support|stock|carry|take|rent|serve|open|closed?|allow|cover|refund|hire|match|repair|located|based|included?)\b",
    ignore_case=True,
)
"""A question about whoever the agent speaks for."""

_WE = pattern(r"\b(?:we|our|ours|us)\b", ignore_case=True)
_DEFINITE = pattern(r"\b(?:the|your|our|this|these|those)\s+(\p{L}+)(?:\s+(\p{L}+))?(?:\s+(\p{L}+))?", ignore_case=True)
_COMPLEMENTED = frozenset({"of", "between", "in", "for", "from", "at", "on", "to", "with"})
"""What follows a noun that is known by what comes after it: *the capital of Australia*."""

_ARTICLES = frozenset({"a", "an", "the"})

_ASKING = word_set(
    """
    answer ask can comment compare could describe detail do explain far give go help how hi know let list long make many mean
    more much need please question rewrite say short show summarise summarize summary tell thank translate want what when where
    which who whose why would write yes no ok okay hey hello thanks
    """
)
_RELATIONAL = word_set(
    """
    address age amount area author balance benefit boss brand budget capacity cause ceo cfo chair chairman chairwoman charge client
    colour color competitor condition contact content cost cto currency customer date deadline delay department depth detail
    difference director distance dosage dose duration effect email employee exception expense fare fee figure founder frequency
    goal guarantee head headquarters height hour income interest landlord leader length level limit limitation loan location loss
    maker management manager manufacturer margin maximum member minimum model name notice number offer office opening owner
    parent part partner patient payment penalty people percentage period phone policy population position premise president price
    product profit purpose quality quantity range rate rating reason refund rent requirement result revenue risk role rule salary
    sale schedule service share side size source speed staff start status step stock subsidiary supplier symptom target tax team
    temperature tenant term time title total type unit usage user value vendor version volume warranty website weight width worker
    """
)
"""Nouns that mean something only of something else: the price of what, the founder of what."""

_KINDS = word_set(
    """
    account agreement airline airport app application article bank bike board book booking bridge building bus car case city clinic
    company contract country course court database device doctor document drug email event family film firm flat flight game group
    hospital hotel house insurance invoice island item journey law lease letter library machine medication medicine meeting message
    museum order organisation organization package paper pipeline place plan plane plant platform process program project property
    queue recipe repository report restaurant room route school server shop show site store studio study subscription system table
    tablet tool tour town train trip university vaccine vehicle village
    """
)
"""Nouns of a kind of thing. *The company* is one that was spoken of."""


@dataclass(frozen=True)
class Subject:
    """What sources are about, as words, names and exact figures."""

    stems: frozenset[str]
    names: KnownNames
    figures: frozenset[str]

    @staticmethod
    def of(texts: Sequence[str]) -> Subject:
        """Return the subject of *texts*."""
        return Subject(
            frozenset(stem for text in texts for stem in content_stems(text)),
            KnownNames.joined(map(names_known, texts)),
            frozenset(figure for text in texts for figure in _figures(text)),
        )

    def shares_a_word(self, text: str) -> bool:
        """Whether a text shares a content word with the sources."""
        return not content_stems(text).isdisjoint(self.stems)

    def has(self, text: str) -> bool:
        """Whether a text shares a name, an exact figure, or most of its words with the sources."""
        if not _figures(text).isdisjoint(self.figures):
            return True
        reading = read(text)
        names = [name.words for name in find_names(reading.tokens, taken_by_values(reading)) if name.sure]
        if any(words not in KNOWN and self.names.knows(words) for words in names):
            return True
        stems = content_stems(text)
        shared = len(stems & self.stems)
        return shared >= _FEWEST_SHARED and shared >= MOST_WORDS * len(stems)


_RUN = pattern(r"[\p{L}\d]+(?:[.,:\-/][\p{L}\d]+)*")


def _figures(text: str) -> frozenset[str]:
    """Return the figures that are no coincidence: of three digits and more, in plain notation, codes with a figure among them."""
    runs = (run.lower().replace(",", "") for run in _RUN.findall(text))
    return frozenset(run for run in runs if sum(map(str.isdigit, run)) >= _EXACT_DIGITS)


def refers_back(question: str, earlier: Sequence[str]) -> bool:
    """Whether a question means something only with the *earlier* texts or the sources.

    It does by a pronoun, by a noun that it takes for known, or for lack of a noun that stands for itself.
    """
    if _points(question) or not _own_words(question):
        return True
    nouns = _definite(question)
    return not nouns.isdisjoint(_KINDS_OF) or _last_with(nouns, earlier) is not None


def antecedent(question: str, earlier: Sequence[SaidText]) -> str:
    """Return what a question refers back to: the last text that has its definite noun, else the last turns.

    A turn that itself only refers back is read with the one before it.
    """
    texts = [one.text for one in earlier]
    if not _points(question) and (found := _last_with(_definite(question), texts)) is not None:
        return found
    taken: list[str] = []
    for one in list(reversed(earlier))[:_MOST_TEXTS]:
        taken.append(one.text)
        if one.kind == USER and not _points(one.text) and _own_words(one.text):
            break
    return "\n".join(reversed(taken))


def _points(question: str) -> bool:
    return _REFERS_BACK.search(_EXPLETIVE.sub(" ", question)) is not None


def _own_words(question: str) -> frozenset[str]:
    return content_stems(question) - _BOUND


def _definite(question: str) -> frozenset[str]:
    """Return the stems of what a question takes for known: *the omelette*; not *the capital of Australia*."""
    found: set[str] = set()
    for phrase in _DEFINITE.findall(question):
        words = [str(word).lower() for word in phrase if word]
        ends = next((place for place, word in enumerate(words) if word in _COMPLEMENTED | _ARTICLES), len(words))
        complemented = ends < len(words) and words[ends] in _COMPLEMENTED
        found.update(() if complemented else words[:ends])
    return frozenset(stem for word in found for stem in content_stems(word))


def _last_with(nouns: Collection[str], earlier: Sequence[str]) -> str | None:
    return (
        next((text for text in reversed(earlier) if not content_stems(text).isdisjoint(nouns)), None) if nouns else None
    )


def _spoken(request: Request) -> list[SaidText]:
    """Return what the user and the model said before the question."""
    said = [one for one in request.said if one.kind in {USER, ANSWERED}]
    while said and said[-1].kind == USER and said[-1].text.strip() in request.query:
        said.pop()
    return said


_KINDS_OF = frozenset(stem for word in _RELATIONAL | _KINDS for stem in content_stems(word))
_BOUND = frozenset(stem for word in _ASKING | _RELATIONAL for stem in content_stems(word))


@dataclass(frozen=True)
class Question:
    """The question of a turn and what it refers back to, each with its similarity to the nearest source."""

    question: str
    question_near: float
    before: str
    before_near: float


async def turn(request: Request, envelope: Envelope, inference: Inference) -> Question | None:
    """Return the turn when its sources may be beside the point, or ``None`` when the answer is judged against them."""
    asked = request.grounding_mode is GroundingMode.AUTO and not request.grounding_required
    if not asked or not request.facts or not request.earlier_facts.issuperset(fact.id for fact in request.facts):
        return None
    question = request.query
    earlier = _spoken(request)
    before = antecedent(question, earlier) if refers_back(question, [one.text for one in earlier]) else ""
    vectors = await inference.embed([text for text in (question, before) if text.strip()])
    near = iter([_nearest(vector, envelope) for vector in vectors])
    return Question(question, next(near) if question.strip() else 0.0, before, next(near) if before.strip() else 0.0)


def _nearest(vector: Floats, envelope: Envelope) -> float:
    return max(similarity for _, similarity in envelope.nearest(vector))


def is_open(asked: Question, claims: Sequence[Claim], evidence: Mapping[str, ClaimEvidence], subject: Subject) -> bool:
    """Whether no source is about a turn or about any of the *claims* of its answer."""
    taken_for_known = not _definite(asked.question).isdisjoint(subject.stems)
    if taken_for_known or _OF_THE_HOUSE.search(asked.question) or _about(asked.question, asked.question_near, subject):
        return False
    if any(
        _WE.search(claim.text) or _about(claim.text, evidence[claim.claim_id].similarity, subject) for claim in claims
    ):
        return False
    if not asked.before:
        return True
    # What points at nothing that was said points at the sources.
    told = len(_own_words(asked.before)) >= _FEWEST_TOLD
    return told and not _about(asked.before, asked.before_near, subject)


def _about(text: str, similarity: float, subject: Subject) -> bool:
    return similarity >= NEAR or subject.has(text) or (similarity >= NEAR_WITH_A_WORD and subject.shares_a_word(text))


async def open_claims(
    request: Request,
    readings: Sequence[ChoiceReading],
    envelope: Envelope,
    evidence: Mapping[str, ClaimEvidence],
    *,
    inference: Inference,
    language: Language,
) -> frozenset[str]:
    """Return the ids of the claims that no source is about, choice by choice."""
    asked = await turn(request, envelope, inference)
    if asked is None:
        return frozenset()

    def find(_: Cancelled) -> frozenset[str]:
        subject = Subject.of(envelope.cut.texts)
        free = (reading.checked for reading in readings if is_open(asked, reading.checked, evidence, subject))
        return frozenset(claim.claim_id for claims in free for claim in claims)

    return await language.run(find, stage="2")
