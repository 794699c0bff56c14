"""What a pod's annotations may ask for. What would loosen the operator's rules, or is not known, is refused and names the annotation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from interlock.domain.errors import Refused, forbidden, invalid
from interlock.injector.rules import InjectorRules, PodWishes
from interlock.runtime.settings.profile_files import PROFILES, ProfileName

PREFIX = "interlock.dev/"
INJECT, STATUS = f"{PREFIX}inject", f"{PREFIX}status"
_PROFILE, _LOG_LEVEL = f"{PREFIX}profile", f"{PREFIX}log-level"
_NATIVE, _TAKE_SECRET = f"{PREFIX}native-sidecar", f"{PREFIX}take-secret"
_RESOURCES = {
    f"{PREFIX}cpu-request": ("requests", "cpu"), f"{PREFIX}memory-request": ("requests", "memory"),
    f"{PREFIX}cpu-limit": ("limits", "cpu"), f"{PREFIX}memory-limit": ("limits", "memory"),
}  # fmt: skip
KNOWN = frozenset({INJECT, STATUS, _PROFILE, _LOG_LEVEL, _NATIVE, _TAKE_SECRET, *_RESOURCES})

_QUANTITY = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|k|Ki|M|Mi|G|Gi)?", re.ASCII)
_SECRET = re.compile(r"([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)/([A-Za-z0-9._-]{1,253})", re.ASCII)
YES, NO = frozenset({"true", "enabled"}), frozenset({"false", "disabled"})
"""What a label or annotation says."""


def annotations_of(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of a pod."""
    return dict(pod.get("metadata", {}).get("annotations") or {})


def wanted(pod: Mapping[str, Any], rules: InjectorRules, namespace: str, *, by_namespace: bool) -> bool:
    """Return whether a pod gets a sidecar: its namespace or the pod itself asks for one, and the pod does not decline.

    A label of the pod counts as its annotation. Refused with OPT_OUT_FORBIDDEN where the namespace lets no pod decline.
    """
    metadata = pod.get("metadata", {})
    said = [(metadata.get(kind) or {}).get(INJECT) for kind in ("annotations", "labels")]
    unclear = [word for word in said if word is not None and word not in YES | NO]
    if unclear:
        raise invalid("ANNOTATION_INVALID", f'{INJECT} must be "true" or "false"', annotation=INJECT)
    if any(word in NO for word in said):
        if by_namespace and not rules.of(namespace).opt_out:
            raise forbidden(
                "OPT_OUT_FORBIDDEN", f"namespace {namespace} lets no pod go without a sidecar", annotation=INJECT
            )
        return False
    return by_namespace or any(word in YES for word in said)


def asked_of(pod: Mapping[str, Any], rules: InjectorRules, namespace: str) -> PodWishes:
    """Return what the annotations of a pod ask for.

    Refused with ANNOTATION_UNKNOWN, ANNOTATION_INVALID or ANNOTATION_LOOSENS.
    """
    found = {name: value for name, value in annotations_of(pod).items() if name.startswith(PREFIX)}
    for name in sorted(found.keys() - KNOWN):
        raise forbidden(
            "ANNOTATION_UNKNOWN",
            f"{name} is no annotation that a pod may set; what the operator alone sets is in the injector's rules",
            annotation=name,
        )
    resources: dict[str, dict[str, str]] = {}
    for name, (kind, resource) in _RESOURCES.items():
        if name in found:
            resources.setdefault(kind, {})[resource] = _matching(
                _QUANTITY, found, name, "a quantity such as 200m or 256Mi"
            )[0]
    secret = _matching(_SECRET, found, _TAKE_SECRET, "NAME/KEY of a Secret") if _TAKE_SECRET in found else None
    return PodWishes(
        profile=_profile(found.get(_PROFILE), rules.floor(namespace)),
        log_level=_one_of(found, _LOG_LEVEL, ("", "debug", "info", "warning", "error")),
        resources=resources,
        native={"": rules.native, "true": True, "false": False}[_one_of(found, _NATIVE, ("", "true", "false"))],
        taken_secret=(secret[1], secret[2]) if secret else None,
    )


def _profile(asked: str | None, floor: ProfileName) -> ProfileName:
    """Return the profile that is asked for, which is the operator's or a stricter one."""
    if asked is None:
        return floor
    known: Mapping[str, ProfileName] = {"observe": "observe", "enforce": "enforce", "regulated": "regulated"}
    if asked not in known:
        raise _invalid(_PROFILE, f"one of {', '.join(PROFILES)}")
    if PROFILES.index(asked) < PROFILES.index(floor):  # from the loosest to the strictest
        raise forbidden(
            "ANNOTATION_LOOSENS",
            f"{_PROFILE}: {asked} is looser than {floor}, which the operator set",
            annotation=_PROFILE,
        )
    return known[asked]


def _one_of(found: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    if (value := found.get(name, "")) not in words:
        raise _invalid(name, f"one of {', '.join(filter(None, words))}")
    return value


def _matching(pattern: re.Pattern[str], found: Mapping[str, str], name: str, what: str) -> re.Match[str]:
    if match := pattern.fullmatch(found[name]):
        return match
    raise _invalid(name, what)


def _invalid(name: str, what: str) -> Refused:
    return invalid("ANNOTATION_INVALID", f"{name} must be {what}", annotation=name)
