"""Cross-agent checks of a fan-in: contradictions between merged answers, and the flow of their synthesis (SPEC-012 §9).

Each merged answer is compared with those before it, claim by claim, as in stage 6: embeddings propose the nearest
claims, NLI and the value rules decide. The answer itself is compared with all of them in the same way. Statements of
two agents about two companies, in words that name neither, are no contradiction (subjects.py).

The flow of the answer (DPE-19) is measured where pasted text would show: the four signals of SPEC-005 §11.3, between
each paragraph and the next. A synthesis of *n* reports has *n* - 1 seams, so its *n* - 1 weakest joints count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from interlock.domain.errors import exhausted
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.claims.subjects import Subject, Subjects, differ, subjects
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim
from interlock.dpe.grounding.attribution import Method
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import EMBEDDING_WIDTH, Floats, Inference
from interlock.dpe.quality import coherence
from interlock.dpe.quality.coherence import CrossWindow, EarlierClaims, wording
from interlock.dpe.quality.coverage import AgentAnswer, Covered, SubQuery, coverage, score
from interlock.dpe.quality.profile import EmbeddedProfile, TextProfile, continued, embed_profile
from interlock.dpe.request import Output, Request

TYPES = {"numeric": "NUMERICAL", "minor": "NUMERICAL", "temporal": "TEMPORAL", "logical": "DIRECT", "stance": "DIRECT"}
"""The report's type for each kind of ``comparison.disagreement``."""

SHORTEST_WORDS = 15
PASSAGE_SENTENCES = 3

_BLANK_LINE = re.compile(r"\n\s*\n")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Between:
    """A contradiction between two merged answers."""

    source_a: str
    claim_a: str
    source_b: str
    claim_b: str
    found: CrossWindow

    @property
    def type(self) -> str:
        """DIRECT, NUMERICAL or TEMPORAL."""
        return TYPES[self.found.kind]


@dataclass(frozen=True)
class Merged:
    """A merged answer, with its profile and the subjects of its claims."""

    answer: AgentAnswer
    subjects: Subjects

    @property
    def claims(self) -> int:
        """Number of its claims that are compared."""
        return len(self.answer.profile.text.claims)


@dataclass(frozen=True)
class FanIn:
    """The merged answers and the contradictions among them."""

    answers: tuple[Merged, ...] = ()
    between: tuple[Between, ...] = ()

    @property
    def claims(self) -> int:
        """Number of checked claims in all merged answers."""
        return sum(one.claims for one in self.answers)

    def contradicted(self) -> int:
        """Return the number of claims that another merged answer contradicts. Minor contradictions do not count."""
        grave = [each for each in self.between if each.found.severity != "LOW"]
        return len({side for each in grave for side in ((each.source_a, each.claim_a), (each.source_b, each.claim_b))})


NOTHING_MERGED = FanIn()


@dataclass(frozen=True)
class CrossAgent:
    """The report's section on a fan-in. ``None`` marks a value that could not be computed."""

    merged: int
    between: tuple[Between, ...]
    coverage: tuple[Covered, ...]
    completeness: float | None
    flow: float | None


def _merged(answer: AgentAnswer, text: str, _: Cancelled) -> Merged:
    return Merged(answer, subjects(answer.profile.text.claims, {0: text}, sub_query=answer.sub_query))


def _reading_subjects(reading: ChoiceReading, request: Request) -> Subjects:
    return subjects(reading.checked, {number: output.text for number, output in enumerate(request.outputs)})


def _keep_same_subject(reading: ChoiceReading, request: Request, found: Sequence[Contradiction]) -> list[Contradiction]:
    own_subjects, texts = _reading_subjects(reading, request), {claim.claim_id: claim.text for claim in reading.checked}
    return [each for each in found if not differ(own_subjects, texts[each.claim_id], own_subjects, each.other_text)]


async def fan_in(answers: Sequence[Merged], *, inference: Inference, language: Language) -> FanIn:
    """Return the merged answers with every contradiction between two of them, the earlier answer's claim first."""
    found: list[Between] = []
    for number in range(1, len(answers)):
        now = answers[number].answer
        seen = await against(
            now.profile.text.claims, now.profile.claims, answers[number].subjects, answers[:number],
            inference=inference, language=language,
        )  # fmt: skip
        texts = {claim.claim_id: claim.text for claim in now.profile.text.claims}
        found += [Between(each.window_id, each.other_text, now.source_id, texts[each.claim_id], each) for each in seen]
    return FanIn(tuple(answers), tuple(found))


async def against(
    claims: Sequence[Claim],
    vectors: Floats,
    own_subjects: Subjects,
    answers: Sequence[Merged],
    *,
    inference: Inference,
    language: Language,
) -> list[CrossWindow]:
    """Return what *claims* contradict in *answers*, with the source as window.

    Claims of other subjects are left out.
    """
    found = await coherence.contradictions(
        claims, vectors, _merged_claims(answers), inference=inference, language=language
    )
    texts = {claim.claim_id: claim.text for claim in claims}
    answer_subjects = {one.answer.source_id: one.subjects for one in answers}
    return [
        each
        for each in found
        if not differ(own_subjects, texts[each.claim_id], answer_subjects[each.window_id], each.other_text)
    ]


def _merged_claims(answers: Sequence[Merged]) -> EarlierClaims:
    """Return all claims of the answers. Of claims with the same wording and subject, the first stands for all."""
    rows: dict[tuple[str, tuple[Subject, ...], frozenset[str]], tuple[Claim, Floats, str]] = {}
    for one in answers:
        claims = coherence.window_claims(one.answer.source_id, one.answer.profile)
        for claim, vector in claims:
            key = (wording(claim.text), one.subjects.of(claim.text), one.subjects.years)
            rows.setdefault(key, (claim, vector, one.answer.source_id))
    return coherence.stack_claims(rows.values(), EMBEDDING_WIDTH)


def passages(text: str, language: Language) -> tuple[str, ...]:
    """Return the paragraphs of a text. A heading or a short line is joined to what follows it.

    A text without paragraphs is cut into runs of three sentences, so that pasting without a blank line hides no seam.
    """
    found = list(_paragraphs(text))
    if len(found) > 1:
        return tuple(found)
    sentences = [text[start:end] for start, end in language.split(text)]
    runs = [" ".join(sentences[at : at + PASSAGE_SENTENCES]) for at in range(0, len(sentences), PASSAGE_SENTENCES)]
    return tuple(_joined(runs))


def _paragraphs(text: str) -> Iterator[str]:
    yield from _joined([part for part in _BLANK_LINE.split(text) if _WORD.search(part)])


def _joined(parts: Sequence[str]) -> list[str]:
    """Return the parts, with each part that is too short to measure joined to the next, or to the last before it."""
    found: list[str] = []
    held = ""
    for part in parts:
        held = f"{held}\n\n{part}" if held else part
        if len(_WORD.findall(held)) >= SHORTEST_WORDS:
            found.append(held)
            held = ""
    if held and found:
        found[-1] = f"{found[-1]}\n\n{held}"
    return found


def stitched(profiles: Sequence[EmbeddedProfile], merged: int) -> float | None:
    """Return how much the passages of a text read as one document, or ``None`` with fewer than two passages."""
    joints = sorted(
        continued(one, other).score for one, other in pairwise([each for each in profiles if each.text.sentences])
    )
    if not joints:
        return None
    seams = joints[: max(1, merged - 1)]
    return math.fsum(seams) / len(seams)


@dataclass(frozen=True)
class FanInStages:
    """Stages 6, 8 and 9 over a fan-in, with the models and readers of a pipeline."""

    language: Language
    inference: Inference
    most_claims: int
    """Upper bound for the claims of all merged answers together."""
    method: Method
    recall: Callable[[str], Awaitable[EmbeddedProfile]]
    """Return the profile of an earlier answer, from the cache or read now."""
    read: Callable[[Sequence[Output]], Awaitable[Sequence[TextProfile]]]
    """Read texts, each as its own choice. A masked text has several readings; the last one counts."""

    async def compare_answers(self, request: Request) -> FanIn:
        """Read the merged answers and compare each with those before it.

        Refused with CLAIM_LIMIT_EXCEEDED or MERGED_CLAIM_LIMIT_EXCEEDED when they make more claims than are compared.
        """
        answers = []
        for one in request.merged:
            answer = AgentAnswer(one.source_id, await self.recall(one.text), one.sub_query)
            answers.append(await self.language.run(partial(_merged, answer, one.text), stage="6"))
        limit, found = self.most_claims, sum(one.claims for one in answers)
        if found > limit:
            raise exhausted(
                "MERGED_CLAIM_LIMIT_EXCEEDED", "the merged answers make more claims than are compared in one analysis",
                limit=str(limit), found=str(found),
            )  # fmt: skip
        return await fan_in(answers, inference=self.inference, language=self.language)

    async def cross_window(
        self, readings: Sequence[ChoiceReading], earlier: EarlierClaims, request: Request, merged: FanIn
    ) -> list[list[CrossWindow]]:
        """Return the contradictions of each choice with earlier windows and with the merged answers."""
        found = []
        for reading in readings:
            vectors = await self.inference.embed([claim.text for claim in reading.checked])
            windows = await coherence.contradictions(
                reading.checked, vectors, earlier, inference=self.inference, language=self.language
            )
            found.append([*windows, *await self.contradicted(reading, vectors, request, merged, windows)])
        return found

    async def contradicted(
        self, reading: ChoiceReading, vectors: Floats, request: Request, merged: FanIn, earlier: Sequence[CrossWindow]
    ) -> list[CrossWindow]:
        """Return what a choice contradicts in the merged answers, without pairs already in *earlier*."""
        if not merged.answers:
            return []
        own_subjects = await self.language.run(lambda _: _reading_subjects(reading, request), stage="6")
        contradicted = await against(
            reading.checked, vectors, own_subjects, merged.answers, inference=self.inference, language=self.language
        )
        reported = {(each.claim_id, wording(each.other_text)) for each in earlier}
        return [each for each in contradicted if (each.claim_id, wording(each.other_text)) not in reported]

    async def drop_other_subjects(
        self, readings: Sequence[ChoiceReading], request: Request, found: list[list[Contradiction]]
    ) -> list[list[Contradiction]]:
        """Return the contradictions *found* within each choice.

        For a fan-in, pairs about different subjects are dropped.

        A synthesis reports in turn what each report says about its own subject.
        """
        if not request.merged:
            return found

        def kept(_: Cancelled) -> list[list[Contradiction]]:
            return [
                _keep_same_subject(reading, request, inside) for reading, inside in zip(readings, found, strict=True)
            ]

        return await self.language.run(kept, stage="3c")

    async def report(
        self, request: Request, parts: Sequence[SubQuery], needed: Floats, merged: FanIn
    ) -> CrossAgent | None:
        """Return the report's section on the fan-in, or ``None`` without one.

        *needed* holds the vectors of all needs.
        """
        if not merged.answers:
            return None
        answers = [one.answer for one in merged.answers]
        covered = await self.language.run(
            lambda _: coverage(parts, needed, answers, method=self.method) if parts else (), stage="8"
        )
        flows = [
            await self._stitched(output.text, len(answers)) for output in request.outputs if output.kind == "content"
        ]
        measured = [each for each in flows if each is not None]
        return CrossAgent(len(answers), merged.between, covered, score(covered), min(measured, default=None))

    async def _stitched(self, text: str, merged: int) -> float | None:
        parts = await self.language.run(lambda _: passages(text, self.language), stage="9")
        if len(parts) < 2:
            return None
        profiles = await self.read([Output(number, passage) for number, passage in enumerate(parts)])
        embedded = [await embed_profile(each, self.inference) for each in profiles]
        return await self.language.run(lambda _: stitched(embedded, merged), stage="9")
