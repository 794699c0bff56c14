"""Completeness with partial credit: how far answers cover the sub-queries of a task (SPEC-012 §9.2).

A sub-query is decomposed as a query is (SPEC-005 §10.2), and its needs are covered as in stage 8, except that a
sentence which only admits that something was not found covers nothing. A sub-query gets 1.0 when all of its needs are
covered, 0.0 when none is, and 0.5 otherwise. A covered need about which an answer also admits a gap counts 0.5.

"Financial analysis" names a field without detail, and no sentence about a loan is much like those two words. Such a
sub-query is covered by passages: runs of sentences that are nearer to it than to any other sub-query. It gets full
credit when they go into detail, which is two sentences with a name or a figure, or four claims. It gets half when they
do not, or when a gap is admitted. The open part is then named after the field: financial-detail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from interlock.domain.errors import exhausted
from interlock.dpe.grounding.attribution import GENERIC_BELOW, Method
from interlock.dpe.inference.language import Language
from interlock.dpe.inference.port import EMBEDDING_WIDTH, Floats
from interlock.dpe.quality.completeness import ABOUT_FROM, NEAREST_WITHIN, Completeness, Coverage, completeness, level
from interlock.dpe.quality.decomposition import decomposed
from interlock.dpe.quality.profile import EmbeddedProfile
from interlock.dpe.quality.queries import MAX_NEEDS, TOKEN_CHARS, Need, with_tokens
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

FIELD_FROM = 0.12
ASSIGNED_FROM = 0.06
FIELD_NEAREST_WITHIN = 0.02
ASSIGNED_NEAREST_WITHIN = 0.10
DETAILED_SENTENCES = 2
DETAILED_CLAIMS = 4
_FIELD_WORDS = 4

_WORK = word_set(
    "analysis appraisal aspect aspects assessment audit check due-diligence evaluation examination findings investigation "
    "overview part perspective report research review study summary view"
)
_MATTER = (
    r"(?:data|information|figures?|details?|breakdowns?|numbers?|statistics|accounts|records?|documents?|documentation|"
    r"evidence|sources?|estimates?|forecasts?|results?|findings?|values?|answers?)"
)
_GONE = (
    r"(?:not (?:yet )?(?:available|provided|disclosed|published|found|obtained|given|included|accessible|released|known)"
    r"|unavailable|missing|lacking|incomplete|insufficient|inaccessible|undisclosed)"
)
_FIND = (
    r"(?:find|locate|obtain|determine|verify|confirm|establish|assess|access|retrieve|identify|provide|say|tell|answer|"
    r"calculate|estimate|analyse|analyze|evaluate|gather|complete|cover)"
)
_FOUND = (
    r"(?:found|located|obtained|determined|verified|confirmed|established|assessed|accessed|retrieved|identified|provided|"
    r"answered|calculated|estimated|analysed|analyzed|evaluated|gathered|completed|covered)"
)
_ADMITS = pattern(
    rf"\b{_MATTER}\b[^.;]{{0,80}}?\b(?:(?:is|are|was|were|remains?|has been|have been)(?: still| currently)? {_GONE})\b"
    rf"|\b{_MATTER}\b[^.;]{{0,80}}?\b(?:could(?: not|n['’]t)|can(?: ?not|['’]t)) be {_FOUND}\b"
    rf"|\b(?:no|little|insufficient|only limited) (?:\p{{L}}+ ){{0,3}}?{_MATTER}\b[^.;]{{0,60}}?"
    rf"\b(?:is|are|was|were|could be|can be|has been|have been|exists?)(?: (?:available|{_FOUND}|disclosed|published|given))?\b"
    rf"|\b(?:i|we)(?: (?:was|were|am|are))? (?:(?:could|did|do)(?: not|n['’]t)|can(?: ?not|['’]t)|unable to|not able to|failed to)"
    rf"(?: \p{{L}}+)? {_FIND}\b"
    rf"|\b(?:i|we) (?:have|had|found) (?:no|not enough|insufficient) (?:\p{{L}}+ ){{0,3}}?{_MATTER}\b"
    r"|\b(?:beyond|outside|out of) the scope of (?:this|the)\b"
    r"|\b(?:is|are|was|were|has been|have been) not (?:covered|addressed|considered|examined|analysed|analyzed|assessed|included)"
    r" (?:here|in this|in the present|so far|yet)\b"
    rf"|\b(?:could(?: not|n['’]t)|can(?: ?not|['’]t)) be (?:determined|verified|established|ascertained)\b"
    r"|\bremains? to be (?:analysed|analyzed|assessed|determined|examined|clarified|done|seen)\b",
    ignore_case=True,
)


@dataclass(frozen=True)
class SubQuery:
    """A sub-query with its information needs."""

    text: str
    needs: tuple[Need, ...]

    @property
    def is_field(self) -> bool:
        """Whether it names a field of work without any detail, such as Financial analysis."""
        words = self.needs[0].text.casefold().split()
        return len(self.needs) == 1 and 1 < len(words) <= _FIELD_WORDS and words[-1].strip(".?!") in _WORK


@dataclass(frozen=True)
class AgentAnswer:
    """The profile of an agent's answer, with its source and the sub-query that it was to answer."""

    source_id: str
    profile: EmbeddedProfile
    sub_query: str = ""


@dataclass(frozen=True)
class Covered:
    """The coverage of one sub-query: its credit, the source that covers it best, and the open details."""

    sub_query: str
    credit: float
    source_id: str
    uncovered: tuple[str, ...]
    needs: tuple[Coverage, ...]


@dataclass(frozen=True)
class _Sentence:
    """A sentence of an answer: the index of the answer, and how specific its claims are."""

    answer: int
    text: str
    admits: bool
    specific: bool
    claims: int


@dataclass(frozen=True)
class _SentencePool:
    """All sentences of the answers, with one row of vectors for each."""

    answers: Sequence[AgentAnswer]
    sentences: tuple[_Sentence, ...]
    vectors: Floats

    def source(self, row: int) -> AgentAnswer:
        """Return the answer that a sentence belongs to."""
        return self.answers[self.sentences[row].answer]


@dataclass(frozen=True)
class _NeedCredit:
    """The credit of one need."""

    credit: float
    relevance: float
    source_id: str


def decompose_sub_queries(sub_queries: Sequence[str], language: Language) -> tuple[SubQuery, ...]:
    """Return the sub-queries with their needs. Refused with SUB_QUERY_LIMIT_EXCEEDED when they ask for too much."""
    found = [decomposed(text, language)[0] or (Need(" ".join(text.split())),) for text in sub_queries]
    if (total := sum(map(len, found))) > MAX_NEEDS:
        raise exhausted(
            "SUB_QUERY_LIMIT_EXCEEDED", "the sub-queries ask for too much", limit=str(MAX_NEEDS), found=str(total)
        )
    named = iter(with_tokens([need for needs in found for need in needs]))
    return tuple(
        SubQuery(text, tuple(next(named) for _ in needs)) for text, needs in zip(sub_queries, found, strict=True)
    )


def coverage(
    parts: Sequence[SubQuery], vectors: Floats, answers: Sequence[AgentAnswer], *, method: Method
) -> tuple[Covered, ...]:
    """Return how far *answers* cover each sub-query. *vectors* has one row for each need, in order."""
    needs = [need for part in parts for need in part.needs]
    rows = [one.profile.sentences for one in answers if one.profile.text.sentences]
    pool = _SentencePool(
        answers,
        tuple(sentence for number, one in enumerate(answers) for sentence in _sentences(number, one.profile)),
        np.concatenate(rows) if rows else np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32),
    )
    need_credits = _by_sentence(needs, vectors, pool, method)
    at, found = 0, []
    for part in parts:
        part_credits = need_credits[at : at + len(part.needs)]
        if part.is_field:
            part_credits = [_by_passage(part, at, vectors, pool)]
        found.append(_covered(part, part_credits))
        at += len(part.needs)
    return tuple(found)


def score(covered: Sequence[Covered]) -> float | None:
    """Return the mean credit, or ``None`` without a sub-query."""
    return sum(one.credit for one in covered) / len(covered) if covered else None


def as_completeness(covered: Sequence[Covered]) -> Completeness:
    """Return the coverage in the form of stage 8: the needs, the mean credit and its band."""
    mean = score(covered) or 0.0
    return Completeness(tuple(need for one in covered for need in one.needs), mean, level(mean))


def admits(sentence: str) -> bool:
    """Whether a sentence admits that something was not found, and so answers nothing."""
    return bool(_ADMITS.search(sentence))


def _sentences(number: int, profile: EmbeddedProfile) -> Iterator[_Sentence]:
    for index, text in enumerate(profile.text.sentences):
        claims = [claim for claim in profile.text.claims if claim.sentence_index == index]
        specific = any(claim.specificity >= GENERIC_BELOW for claim in claims)
        yield _Sentence(number, text, admits(text), specific, len(claims))


def _by_sentence(needs: Sequence[Need], vectors: Floats, pool: _SentencePool, method: Method) -> list[_NeedCredit]:
    """Return the credit of each need by the rules of stage 8. Sentences that admit a gap cover nothing."""
    stated = [row for row, sentence in enumerate(pool.sentences) if not sentence.admits]
    gaps = pool.vectors[[row for row, sentence in enumerate(pool.sentences) if sentence.admits]] @ vectors.T
    has_gap = ((gaps >= ABOUT_FROM) & (gaps >= gaps.max(axis=1, keepdims=True) - NEAREST_WITHIN)).any(axis=0)
    nearest = (pool.vectors[stated] @ vectors.T).argmax(axis=0) if stated else []
    texts = [pool.sentences[row].text for row in stated]
    found = completeness(needs, vectors, texts, pool.vectors[stated], method=method).needs
    return [
        _NeedCredit(
            credit=0.0 if not seen.covered else 0.5 if has_gap[number] else 1.0,
            relevance=seen.relevance,
            source_id=pool.source(stated[nearest[number]]).source_id if seen.covered else "",
        )
        for number, seen in enumerate(found)
    ]


def _by_passage(part: SubQuery, row: int, vectors: Floats, pool: _SentencePool) -> _NeedCredit:
    """Return the credit of a field by the passages nearest to it."""
    taken: list[int] = []
    best, source = 0.0, ""
    for rows in _passages(pool, vectors, row, part):
        answer = pool.source(rows[0])
        near = float(vectors[row] @ _centroid(pool.vectors[rows]))
        if near >= (ASSIGNED_FROM if _same_wording(answer.sub_query, part.text) else FIELD_FROM):
            taken += rows
            best, source = max((near, answer.source_id), (best, source))
    return _NeedCredit(_detail([pool.sentences[at] for at in taken]), best, source)


def _detail(taken: Sequence[_Sentence]) -> float:
    """Return the credit for the detail that passages give about a field."""
    stated = [sentence for sentence in taken if not sentence.admits and sentence.claims]
    if not stated:
        return 0.0
    detailed = sum(s.specific for s in stated) >= DETAILED_SENTENCES or sum(s.claims for s in stated) >= DETAILED_CLAIMS
    return 1.0 if detailed and not any(s.admits for s in taken) else 0.5


def _passages(pool: _SentencePool, vectors: Floats, row: int, part: SubQuery) -> Iterator[list[int]]:
    """Yield runs of sentences of one answer, each nearest to a need when averaged with its neighbours."""
    run: list[int] = []
    for at in range(len(pool.sentences)):
        if run and pool.sentences[run[-1]].answer != pool.sentences[at].answer:
            yield run
            run = []
        near = vectors @ _context_vector(pool, at)
        within = (
            ASSIGNED_NEAREST_WITHIN if _same_wording(pool.source(at).sub_query, part.text) else FIELD_NEAREST_WITHIN
        )
        if near[row] >= near.max() - within:
            run.append(at)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _context_vector(pool: _SentencePool, at: int) -> Floats:
    """Return the direction of a sentence plus half that of each neighbour in its answer."""
    adjacent = [n for n in (at - 1, at + 1) if 0 <= n < len(pool.sentences)]
    rows = [n for n in adjacent if pool.sentences[n].answer == pool.sentences[at].answer]
    return _centroid(pool.vectors[[at, at, *rows]])


def _centroid(rows: Floats) -> Floats:
    mean = rows.mean(axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9))


def _covered(part: SubQuery, need_credits: Sequence[_NeedCredit]) -> Covered:
    earned = [one.credit for one in need_credits]
    credit = 1.0 if min(earned) == 1.0 else 0.0 if max(earned) == 0.0 else 0.5
    best = max(need_credits, key=lambda one: (one.credit, one.relevance))
    needs = tuple(
        Coverage(
            need if one.credit != 0.5 else Need(need.text, _open_detail(part, need), need.compared),
            one.relevance,
            covered=one.credit == 1.0,
        )
        for need, one in zip(part.needs, need_credits, strict=True)
    )
    uncovered = tuple(each.need.token for each in needs if not each.covered)
    return Covered(part.text, credit, best.source_id if credit else "", uncovered, needs)


def _open_detail(part: SubQuery, need: Need) -> str:
    """Return the name of the open detail of a need that is covered in part."""
    words = need.token.split("-")
    topic = "-".join(words[:-1]) if part.is_field and len(words) > 1 else need.token
    return f"{topic[: TOKEN_CHARS - len('-detail')].rstrip('-')}-detail"


def _same_wording(one: str, other: str) -> bool:
    return bool(one) and " ".join(one.casefold().split()) == " ".join(other.casefold().split())
