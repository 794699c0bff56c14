"""Remarks about a policy text, each at its place: those of its policy, and those that only the text shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.domain.policy.directives import DIRECTIVES, Policy, written
from interlock.domain.policy.policy_text import PROFILES, parse
from interlock.domain.policy.workbench.rules import Gravity, Trap, remarks

_ALIAS, _PROFILE = "require-oversight", "profile="


@dataclass(frozen=True)
class Remark:
    """A remark, and the position in the text that it is about: characters from the start, ``None`` for the whole text."""

    code: str
    weight: Gravity
    directive: str
    says: str
    position: int | None


def lint(text: str) -> list[Remark]:
    """Return what is hardly meant in a policy text, in the order of the text. Refused like ``parse`` for a malformed one."""
    policy = parse(text)
    places = _places(text)
    found = [*_twice(places), *_looser_than_profile(text, places, policy), *remarks(policy)]
    placed = [_placed(one, places) for one in found]
    return sorted(placed, key=lambda one: len(text) if one.position is None else one.position)


def _placed(found: Trap, places: dict[str, int]) -> Remark:
    names = (found.directive, _ALIAS if found.directive == "oversight" else "", _PROFILE)
    at = next((name for name in names if name in places), None) if found.directive else None
    # Nobody wrote what a profile brings: that it is without effect is worth a note alone.
    weight = Gravity.NOTE if at == _PROFILE else found.weight
    return Remark(found.code, weight, found.directive, found.says, None if at is None else places[at])


def _places(text: str) -> dict[str, int]:
    """Return where each directive of a well-formed text begins, and its profile under ``profile=``."""
    places: dict[str, int] = {}
    at = 0
    for piece in text.split(";"):
        directive = piece.lstrip(" \t")
        name = directive.partition(" ")[0].lower()
        places.setdefault(_PROFILE if name.startswith(_PROFILE) else name, at + len(piece) - len(directive))
        at += len(piece) + 1
    return places


def _twice(places: dict[str, int]) -> Iterator[Trap]:
    if {"oversight", _ALIAS} <= places.keys():
        yield Trap("TWICE", Gravity.WARNING, "oversight", "oversight and require-oversight are one directive; the tighter counts")  # fmt: skip


def _looser_than_profile(text: str, places: dict[str, int], policy: Policy) -> Iterator[Trap]:
    """Yield the directives beside a profile that it makes moot: a profile can only be tightened."""
    if _PROFILE not in places or len(places) == 1:
        return
    own = parse("; ".join(piece.strip(" \t") for piece in text.split(";") if not _is_profile(piece)))
    name = next(piece.strip(" \t") for piece in text.split(";") if _is_profile(piece))[len(_PROFILE) :].lower()
    preset = parse(PROFILES[name])
    for directive, said, given, held in zip(DIRECTIVES, own, preset, policy, strict=True):
        if said and given and held == given and not directive.startswith("report-"):
            value = written(directive, given)
            yield Trap("UNDER_PROFILE", Gravity.WARNING, directive, f"profile {name} has it{' at ' + value if value else ''} already, and can only be tightened")  # fmt: skip


def _is_profile(piece: str) -> bool:
    return piece.lstrip(" \t").lower().startswith(_PROFILE)
