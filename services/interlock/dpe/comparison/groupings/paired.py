"""Paired groups: what a source tells of two things by *respectively*, or by *the former* and *the latter* (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.groupings.group import Group, Grouping, denies, ordered_words, words_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_ENDS = pattern(r"[.!?]\s+|\n+|[.!?]\z")
_TITLE = pattern(r"\b(Dr|Mr|Mrs|Ms|Prof|St|No)\.\s")
_RESPECTIVELY = pattern(r"[,\s]*\brespectively\b", ignore_case=True)
_AND = pattern(r"\s+(?:and|or)\s+")
_POINTING = pattern(r"\bthe (former|latter)\b([^.;,]*)", ignore_case=True)
_THINGS = word_set("part half stage stages year years case option one mayor owner president director")
"""Nouns that *the former* and *the latter* may only describe."""
_JOINED = pattern(r"\s+(?:and|but|while|whereas)\s+the\s+(?:former|latter)\b", ignore_case=True)
_BEFORE, _AFTER, _LONGEST = 2, 3, 8000
_Pair = tuple[str, str]


def paired(text: str, fact_id: str) -> tuple[Grouping, ...]:
    """Return the pairs that a text states in two lists."""
    low = text.casefold()
    if len(text) > _LONGEST or not ("respectively" in low or "the latter" in low or "the former" in low):
        return ()
    found = [part.strip() for part in _ENDS.split(_TITLE.sub(r"\1 ", text)) if part.strip()]
    every = [*(each for one in found for each in _respective(one)), *_pointed(found)]
    return tuple(Grouping(groups, said, fact_id) for groups, said in every)


def _respective(sentence: str) -> Iterator[tuple[tuple[Group, ...], str]]:
    match = _RESPECTIVELY.search(sentence)
    if match is None:
        return
    joints = list(_AND.finditer(sentence))
    if len(joints) != 2:
        return
    first, second = joints
    one = _around(sentence[: first.start()], sentence[first.end() : second.start()])
    other = _around(sentence[first.end() : second.start()], sentence[second.end() :].replace(match.group(), " "))
    if one is not None and other is not None and not set(one) & set(other):
        yield tuple(Group(frozenset({a}), (frozenset({b}),)) for a, b in zip(one, other, strict=True)), sentence


def _around(before: str, after: str) -> _Pair | None:
    """Return the words on both sides of an *and* that name what it joins: the nearest ones that both sides do not share."""
    left, right = ordered_words("x " + before)[-_BEFORE:], ordered_words("x " + after)[1 : 1 + _AFTER]
    shared = set(left) & set(right)
    own, other = [word for word in left if word not in shared], [word for word in right if word not in shared]
    return (own[-1], other[0]) if own and other else None


def _pointed(sentences: list[str]) -> Iterator[tuple[tuple[Group, ...], str]]:
    """Yield the two things that *the former* and *the latter* point at, with what is said of each."""
    for n, sentence in enumerate(sentences):
        told = _told(sentence)
        if not told:
            continue
        follows = sentences[n + 1] if n + 1 < len(sentences) else ""
        told = _told(follows) | told
        lead = sentence[: min(sentence.casefold().find(f"the {each}") % len(sentence) for each in _told(sentence))]
        lead = lead if _AND.search(lead) else sentences[n - 1] if n else ""
        joints = list(_AND.finditer(lead))
        names = _around(lead[: joints[0].start()], lead[joints[0].end() :]) if len(joints) == 1 else None
        if names is not None:
            groups = tuple(
                _pointed_group(name, told.get(each, ""), names)
                for name, each in zip(names, ("former", "latter"), strict=True)
            )
            yield groups, f"{lead}. {sentence}. {follows}"


def _pointed_group(name: str, body: str, names: _Pair) -> Group:
    own = words_of("x " + body) - {"x", *names}
    return Group(frozenset({name}), () if denies(body) or not own else (own,), least=1)


def _told(sentence: str) -> dict[str, str]:
    """Return what a sentence says of *the former* and of *the latter*."""
    found: dict[str, str] = {}
    for match in _POINTING.finditer(sentence):
        body = _JOINED.split(match.group(2))[0]
        if body.split()[:1] and body.split()[0].lower() not in _THINGS:
            found.setdefault(match.group(1).casefold(), body)
    return found
