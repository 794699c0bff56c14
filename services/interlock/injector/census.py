"""Which pods of a cluster run without the sidecar that they should have, and why: pure, by the rules of the webhook itself.

The webhook sees a pod once, when it is created. Pods from before it was installed, from a time when it was away, or that it was never
asked about are found here alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from interlock.domain.errors import Refused
from interlock.injector.pod import SIDECAR, injected
from interlock.injector.request import INJECT, NO, YES, annotations_of, wanted
from interlock.injector.rules import InjectorRules

EXEMPT = frozenset({"kube-system", "kube-public", "kube-node-lease"})
"""Namespaces that the webhook leaves alone, beside the mesh's own."""
_OVER = frozenset({"Succeeded", "Failed"})


class Why(StrEnum):
    """What is wrong with a pod."""

    MISSING = "SIDECAR_MISSING"
    NOT_SEEN = "ANNOTATION_NOT_SEEN"
    UNCLEAR = "NAMESPACE_LABEL_INVALID"
    OUTDATED = "SIDECAR_OUTDATED"


TOLD: Mapping[Why, str] = {
    Why.MISSING: "it should have a sidecar and has none: it was created while no webhook saw it; create it anew",
    Why.NOT_SEEN: f"it asks by the annotation {INJECT} alone, which the webhook does not see: make it a label of the pod, or label its namespace",
    Why.UNCLEAR: f'the label {INJECT} of its namespace is neither "enabled" nor "disabled"',
    Why.OUTDATED: "its sidecar is not what the injector makes now: create it anew",
}
"""What is said of it."""


@dataclass(frozen=True)
class Ungoverned:
    """One pod that is not as the rules want it."""

    namespace: str
    pod: str
    uid: str
    why: Why

    @property
    def detail(self) -> str:
        """What is wrong and what helps."""
        return TOLD[self.why]


def census(
    pods: Iterable[Mapping[str, Any]],
    namespaces: Mapping[str, Mapping[str, str]],
    rules: InjectorRules,
    *,
    exempt: Collection[str] = (),
) -> Iterator[Ungoverned]:
    """Yield the pods that are not as they should be; *namespaces* are the labels of each, *exempt* those left alone besides ``EXEMPT``.

    A pod that has ended, or is about to, is none.
    """
    for pod in pods:
        metadata = pod.get("metadata") or {}
        namespace = metadata.get("namespace") or ""
        over = metadata.get("deletionTimestamp") or (pod.get("status") or {}).get("phase") in _OVER
        if over or namespace in EXEMPT or namespace in exempt:
            continue
        if why := _fault(pod, namespaces.get(namespace) or {}, rules, namespace):
            yield Ungoverned(namespace, str(metadata.get("name") or ""), str(metadata.get("uid") or ""), why)


def _fault(pod: Mapping[str, Any], labels: Mapping[str, str], rules: InjectorRules, namespace: str) -> Why | None:
    label = labels.get(INJECT)
    asked = label in YES or not rules.of(namespace).opt_out
    if _has_sidecar(pod):
        return None if _is_current(pod, rules, namespace) else Why.OUTDATED
    if not asked and label is not None and label not in NO:
        return Why.UNCLEAR
    try:
        due = wanted(pod, rules, namespace, by_namespace=asked)
    except Refused:  # it declines where it may not, or with a word that means nothing
        due = True
    if not due:
        return None
    seen = asked or INJECT in ((pod.get("metadata") or {}).get("labels") or {})
    return Why.MISSING if seen else Why.NOT_SEEN if INJECT in annotations_of(pod) else None


def _has_sidecar(pod: Mapping[str, Any]) -> bool:
    spec = pod.get("spec") or {}
    every = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    return any(one.get("name") == SIDECAR for one in every)


def _is_current(pod: Mapping[str, Any], rules: InjectorRules, namespace: str) -> bool:
    try:
        injected(pod, rules, namespace)
    except Refused:
        return False
    return True
