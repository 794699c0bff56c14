"""Scopes: quantifiers raised and conditions dropped or turned round between a claim and its source (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import BoundFrame, Evidence, agree
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, Likeness, key, same
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.comparison.bindings.limits import Limit, LimitKind, is_undone, quantity
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_ALL, _MOST = 4, 3
_SAME_CONTENT = 0.6
_SAME_TOPIC = 0.5
_LEAST_SHARED = 2
_DENYING = word_set("not no never none nobody nothing cannot without neither")
_UNDONE = pattern(r"^(?:fail(?:s|ed|ing)?|lack(?:s|ed|ing)?|unpaid|un(?:[a-hj-su-z]|t[a-hj-z]|i[a-mo-z])[a-z]*ed)$")
"""Words that deny what they are made of: *unanswered*, *failed to heal*; but not *united*."""
_ASKING = word_set("if when provided providing")
_LATER = ("afterwards", "later", "thereafter", "then", "otherwise", "after that", "from then on")
_EACH_TIME = word_set("whenever wherever")
_RESTRICTING = word_set("for if when with to in by on from after during within under at between where those")


def raised(claim: PredicateFrame, evidence: Evidence) -> Misbinding | None:
    """Return the quantifier that *claim* raises, *all* for *most*, where the sources nowhere go so far; or ``None``."""
    if claim.negated or claim.hypothetical:
        return None
    for slot, filler in claim.all():
        claimed = quantity(filler.quantifier)
        if claimed < _MOST:
            continue
        about = [(each, other) for each, other in _quantified(claim, slot, filler, evidence)]
        if any(not other.quantifier or quantity(other.quantifier) >= claimed for _, other in about):
            continue
        for each, other in about:
            if 0 < quantity(other.quantifier) < claimed:
                return _finding("quantifier", other.quantifier, filler.quantifier, each.frame.text, each.fact_id)
    return None


def _quantified(
    claim: PredicateFrame, slot: str, filler: Filler, evidence: Evidence
) -> Iterator[tuple[BoundFrame, Filler]]:
    """Yield the fillers of the same noun in frames that say the same, or that share another filler with the claim."""
    alike = {id(each) for each in evidence.alike(claim)}
    for each in evidence.bound:
        for other_slot, other in each.frame.all():
            if other.kind is FillerKind.UNKNOWN or not same(filler, other) or filler.head != other.head:
                continue
            rest = [
                evidence.likeness(claim.slots[s], each.frame.slots[s])
                for s in claim.slots.keys() & each.frame.slots.keys() - {slot, other_slot}
            ]
            if Likeness.APART in rest or each.frame.negated:
                continue
            if id(each) in alike or any(
                agree(f, g)
                for s, f in claim.all()
                for t, g in each.frame.all()
                if (s, t) != (slot, other_slot) and f is not filler
            ):
                yield each, other


def unbounded(claim: ReadSentence, evidence: Evidence, mentioned: frozenset[str]) -> Misbinding | None:
    """Return the limit of a source that *claim* drops, denies or turns round, or ``None``.

    *mentioned* are the words of the answer: a limit that the answer names elsewhere is not dropped.
    """
    aligned = [each for each in evidence.passages if _is_about(claim, each, evidence)]
    if (
        claim.degree == _ALL
        and any(0 < each.degree < _ALL for each in aligned)
        and not any(e.degree == _ALL for e in aligned)
    ):
        other = next(each for each in aligned if 0 < each.degree < _ALL)
        return _finding("quantifier", other.degree_word, claim.degree_word, other.text, other.fact_id)
    for other in evidence.passages:
        for stated in other.limits:
            found = (
                _denied(claim, other, stated, aligned)
                or _widened(claim, stated, aligned=other in aligned)
                or _turned(claim, other, stated, aligned=_is_of_its_things(claim, other, evidence))
            )
            if found is not None and not _says_so(found, claim, evidence):
                return _finding("condition", stated.text, found.text, other.text, other.fact_id)
            if (
                other in aligned
                and stated.kind is LimitKind.ONLY
                and _dropped(claim, other, stated, mentioned, evidence)
            ):
                return _finding("condition", stated.text, "", other.text, other.fact_id)
    return None


def _is_about(claim: ReadSentence, source: ReadSentence, evidence: Evidence) -> bool:
    """Whether a source's sentence says of the same things what the claim says, limits aside."""
    return any(
        evidence.agrees(mine, its) for mine in claim.frames for its in source.frames if mine.negated == its.negated
    )


def _is_of_its_things(claim: ReadSentence, source: ReadSentence, evidence: Evidence) -> bool:
    """Whether a source's sentence says something of the same things, be it the opposite; what the limits say is no such thing."""
    limited = [[each for each in told.frames if not each.hypothetical] for told in (claim, source)]
    return any(evidence.agrees(mine, its) for mine in limited[0] for its in limited[1])


def _denied(claim: ReadSentence, source: ReadSentence, stated: Limit, aligned: list[ReadSentence]) -> Limit | None:
    """Return what in a claim says that it holds always, where the source limits it."""
    if stated.kind is LimitKind.ALWAYS:
        return None
    for own in claim.limits:
        if any(each.kind is own.kind and each.text.split()[:2] == own.text.split()[:2] for each in source.limits):
            continue  # the source says so itself, as of *any one item*
        if own.kind is not LimitKind.ALWAYS or (
            own.text[:9].lower() == "including" and stated.kind is not LimitKind.UNLESS
        ):
            continue
        if (
            _is_its_own_case(own, stated)
            or _is_the_same_case(own, stated)
            or _is_kept(claim, stated)
            or _keeps(claim, own, stated)
        ):
            continue
        if _is_even(own) and stated.kind in {LimitKind.IF, LimitKind.UNLESS} and not _is_lifted(own, stated):
            continue
        fragment = not claim.content - own.words - stated.words and len(own.words & stated.words) >= min(
            2, len(stated.words)
        )
        rest = claim.content - own.words
        about = rest & (source.content - stated.words)  # more than whom it is about, who may be another of its kind
        named = any(about & name.words for clause in claim.clauses for name in clause.names)
        least = min(_LEAST_SHARED, len(rest)) if own.text[:4].lower() == "any " and not named else 1
        told = bool(about) and len(about) >= least
        if own.words & stated.words and (source in aligned or fragment or told):
            return own
        if own.text[:4].lower() == "any " and stated.kind is LimitKind.ONLY and _is_of_the_same(claim, source, own):
            return own
        if not own.words and source in aligned and not claim.content & stated.words:
            return own
    return None


def _is_even(own: Limit) -> bool:
    """Whether a limit says *even if* or the like, and so that something holds in that case too."""
    first, second = (*own.text.lower().split(), "", "")[:2]
    return first == "even" and second != "without"


def _keeps(claim: ReadSentence, own: Limit, stated: Limit) -> bool:
    """Whether a claim that says *whenever* or *in any case* states the limit all the same: *in any case, only if it rains*."""
    if not stated.words:
        return False
    if own.text.split()[0].lower() in _EACH_TIME:
        return stated.kind is LimitKind.IF and len(stated.words & own.words) >= _SAME_CONTENT * len(stated.words)
    others = [each for each in claim.limits if each is not own and each.kind is stated.kind]
    return any(len(each.words & stated.words) >= _SAME_CONTENT * len(stated.words) for each in others)


def _is_its_own_case(own: Limit, stated: Limit) -> bool:
    """Whether *even if* names the very case that a source is about: *even if their milk was boiled*, of those *who drank only boiled milk*."""
    within = bool(own.words) and own.words <= stated.words
    return _is_even(own) and stated.kind is LimitKind.ONLY and within and not _is_denying(own.text)


def _is_the_same_case(own: Limit, stated: Limit) -> bool:
    """Whether *whenever the tide is high* only words otherwise what its source says holds when, or only when, it is."""
    opens = own.text.split(maxsplit=1)[0].lower() in {"whenever", "wherever"}
    return opens and stated.kind in {LimitKind.IF, LimitKind.ONLY} and _is_mostly(own.words, stated.words)


def _is_mostly(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _SAME_CONTENT * max(len(one), len(other)) > 0


def _is_kept(claim: ReadSentence, stated: Limit) -> bool:
    """Whether a claim that says *in any case* goes on to state the limit itself: *in any case, only if it is dry*."""
    return any(each.kind is stated.kind and bool(each.words & stated.words) for each in claim.limits)


def _is_lifted(own: Limit, stated: Limit) -> bool:
    """Whether *even if* takes away what is stated: *even if they object* goes with *if they object*, not with *unless they object*."""
    return _is_denying(own.text) != (stated.kind is LimitKind.UNLESS or _is_denying(stated.text))


def _is_denying(text: str) -> bool:
    return has_negator(text) or "without" in text.lower().split()


def _is_of_the_same(claim: ReadSentence, source: ReadSentence, own: Limit) -> bool:
    """Whether a claim says of any what its source says of some only: the rest of both is the same."""
    rest = claim.content - own.words
    return len(rest & source.content) >= _LEAST_SHARED and len(rest & source.content) >= _SAME_TOPIC * len(rest)


def _widened(claim: ReadSentence, stated: Limit, *, aligned: bool) -> Limit | None:
    """Return the quantifier by which a claim says of all what its source says only of some."""
    if not aligned or stated.kind is not LimitKind.ONLY or not stated.words - claim.content:
        return None
    for frame in claim.frames:
        for _, filler in frame.all():
            if quantity(filler.quantifier) == _ALL and filler.head in stated.words and filler.words <= stated.words:
                return Limit(LimitKind.ALWAYS, filler.words, filler.text)
    return None


def _turned(claim: ReadSentence, source: ReadSentence, stated: Limit, *, aligned: bool) -> Limit | None:
    """Return the condition of a claim that the source states as an exception, or the other way round."""
    if stated.text[:4].lower() == "when" or "otherwise" in claim.text.lower().split():
        return None
    turned = {LimitKind.IF: LimitKind.UNLESS, LimitKind.ONLY: LimitKind.UNLESS, LimitKind.UNLESS: LimitKind.IF}
    for own in claim.limits:
        against = turned.get(stated.kind) is own.kind or (stated.kind, own.kind) == (LimitKind.UNLESS, LimitKind.ONLY)
        least = min(len(own.words), len(stated.words))
        alike = least and len(own.words & stated.words) / least >= _SAME_CONTENT
        if (
            aligned
            and against
            and alike
            and not _is_undone_alike(own, stated)
            and (_denials(claim, own) + _denials(source, stated)) % 2
        ):
            return own
    return None


def _is_undone_alike(own: Limit, stated: Limit) -> bool:
    """Whether one limit says in a word what the other denies: *if he does not answer*, *where it is left unanswered*."""
    for one, other in ((own, stated), (stated, own)):
        undone = [any(map(is_undone, each.text.lower().split())) for each in (one, other)]
        if undone == [True, False] and has_negator(other.text):
            return True
    return False


def _denials(sentence: ReadSentence, limit: Limit) -> int:
    """Count what denies in a limit and in what it limits: *not unless it is dry* allows what *only if it is dry* does."""
    words = limit.text.lower().replace("n't", " not").split()
    inside = sum(word in _DENYING or _UNDONE.match(word) is not None for word in words[1:]) - (
        limit.kind is LimitKind.UNLESS and words[0] in _ASKING
    )
    limited = [each for each in sentence.frames if not each.noun and not each.hypothetical]
    main = next((each for each in limited if each.at == limit.at), limited[0] if limited else None)
    return int(limit.kind is LimitKind.UNLESS) + inside + (main is not None and main.negated)


def _says_so(found: Limit, claim: ReadSentence, evidence: Evidence) -> bool:
    """Whether a source has a limit of the same kind and content itself, or says of the claim's things that they hold in any case."""
    if found.kind is LimitKind.ALWAYS and any(
        each.kind is LimitKind.ALWAYS and not each.words and len(passage.content & claim.content) >= _LEAST_SHARED
        for passage in evidence.passages
        for each in passage.limits
    ):
        return True
    return any(
        each.kind is found.kind
        and (not found.words or bool(each.words & found.words))
        and each.text.lower().startswith("any ") is found.text.lower().startswith("any ")
        for passage in evidence.passages
        for each in passage.limits
    )


def _dropped(
    claim: ReadSentence, source: ReadSentence, stated: Limit, mentioned: frozenset[str], evidence: Evidence
) -> bool:
    """Whether a claim says without any limit what its source says of one case only."""
    if (
        claim.limits
        or not stated.words
        or stated.words & mentioned
        or stated.text.split()[1].lower() not in _RESTRICTING
        or _is_of_another_part(claim, source, stated)
    ):
        return False
    limited = [each for each in source.frames if each.at == stated.at and not each.noun]
    if not any(evidence.agrees(mine, its) for mine in claim.frames for its in limited if mine.negated == its.negated):
        return False
    content = source.content - stated.words
    others = [each for each in evidence.passages if each is not source and _is_about(claim, each, evidence)]
    return not others and bool(content) and len(content & claim.content) / len(content) >= _SAME_TOPIC


def _is_of_another_part(claim: ReadSentence, source: ReadSentence, stated: Limit) -> bool:
    """Whether a limit is a statement of its own, or of another time: *on Monday, and only by day*, *then by phone; later, only in person*."""
    before = source.text.lower().partition(stated.text.lower())[0].rstrip(" ,")
    if before.endswith((" and", *_LATER)):
        return True
    _, cut, part = before.rpartition(";")
    return bool(cut) and not any(key(word) in claim.content for word in part.split())


def _finding(slot: str, stated: str, claimed: str, text: str, fact_id: str) -> Misbinding:
    return Misbinding(CONTEXT_STRIPPED, slot, stated, claimed, text, fact_id)
