"""The page on which a policy is tried: its mistake with a caret, remarks, sentences, each risk level, and how another differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from interlock.domain.errors import Refused
from interlock.domain.policy.directives import Policy
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.workbench.difference import difference
from interlock.domain.policy.workbench.explain import MEANING, at_each_risk, sentences
from interlock.domain.policy.workbench.lint import lint
from interlock.oversight.markup import render, said
from interlock.oversight.pages import frame_of
from interlock.oversight.views import View

_AROUND = 60
"""Characters of a text that are shown before and after the place of a remark."""


def policy_page(view: View, text: str, other: str) -> str:
    """Return the page about a policy, and about its difference to another where one is given. Nothing is stored or set."""
    policy, mistake = _read(text)
    second, second_mistake = _read(other)
    differs = difference(policy, second) if policy is not None and second is not None else None
    return render(
        "policy.html", title="Try a policy", **frame_of(view), here="policy",
        text=text, other=other, mistake=mistake, second_mistake=second_mistake,
        remarks=[_remark(text, one) for one in lint(text)] if policy is not None else [],
        sentences=sentences(policy) if policy is not None else [],
        levels=at_each_risk(policy) if policy is not None else [], meaning=MEANING,
        changes=differs.changes if differs else None,
    )  # fmt: skip


def _read(text: str) -> tuple[Policy | None, Mapping[str, Any] | None]:
    if not text:
        return None, None
    try:
        return parse(text), None
    except Refused as refused:
        position = int(refused.metadata.get("position", "0"))
        near = refused.metadata.get("did_you_mean", "")
        return None, {"says": said(refused.message), "near": said(near) if near else "", **_place(text, position)}


def _remark(text: str, one: Any) -> Mapping[str, Any]:
    place = {"before": None} if one.position is None else _place(text, one.position)
    return {"weight": str(one.weight), "directive": one.directive, "says": one.says, **place}


def _place(text: str, position: int) -> Mapping[str, Markup]:
    """Return the text before a place, and from there on: the caret stands between them."""
    return {
        "before": said(text[max(0, position - _AROUND) : position]),
        "after": said(text[position : position + _AROUND]),
    }
