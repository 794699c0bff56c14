"""An AdmissionReview answered: read strictly, and refused with a reason that `kubectl` shows."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from interlock.domain.errors import Kind, Refused, invalid
from interlock.injector.pod import injected, patch
from interlock.injector.request import INJECT, wanted
from interlock.injector.rules import InjectorRules

VERSION = "admission.k8s.io/v1"
_CODES = {Kind.INVALID: 400, Kind.FORBIDDEN: 403}


def answer(review: Any, rules: InjectorRules, *, by_namespace: bool) -> dict[str, Any]:
    """Return the AdmissionReview that answers *review*. Refused with ADMISSION_REVIEW_INVALID for what is none."""
    request = _request(review)
    response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
    try:
        operations = _operations(request, rules, by_namespace=by_namespace)
    except Refused as refused:
        return _refusal(request, refused)
    if operations:
        text = json.dumps(operations, separators=(",", ":")).encode()
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(text).decode()}
    return _review(response)


def unclear(review: Any) -> dict[str, Any]:
    """Return the refusal of a pod whose namespace has the opt-in's label with a word that means nothing.

    A namespace that its owner believes to be governed would otherwise be governed by nobody.
    """
    request = _request(review)
    said = f'the label {INJECT} of namespace {request.get("namespace")} must be "enabled" or "disabled"'
    return _refusal(request, invalid("NAMESPACE_LABEL_INVALID", said))


def _refusal(request: Mapping[str, Any], refused: Refused) -> dict[str, Any]:
    status = {"code": _CODES.get(refused.kind, 500), "message": f"interlock: {refused.reason}: {refused.message}"}
    return _review({"uid": request["uid"], "allowed": False, "status": status})


def _operations(request: Mapping[str, Any], rules: InjectorRules, *, by_namespace: bool) -> list[dict[str, Any]]:
    pod, namespace = request["object"], request.get("namespace") or ""
    if not wanted(pod, rules, namespace, by_namespace=by_namespace):
        return []
    return patch(pod, injected(pod, rules, namespace))


def _request(review: Any) -> Mapping[str, Any]:
    """Return the request of a review that is about a pod with containers."""
    request = review.get("request") if isinstance(review, Mapping) else None
    if (
        not isinstance(request, Mapping)
        or review.get("apiVersion") != VERSION
        or not isinstance(request.get("uid"), str)
    ):
        raise invalid("ADMISSION_REVIEW_INVALID", f"it is no AdmissionReview of {VERSION}")
    pod = request.get("object")
    spec = pod.get("spec") if isinstance(pod, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    if (
        not isinstance(containers, list)
        or not containers
        or not all(isinstance(one, Mapping) and one.get("name") for one in containers)
    ):
        raise invalid("ADMISSION_REVIEW_INVALID", "it is not about a pod with containers")
    return request


def _review(response: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": "AdmissionReview", "response": response}
