"""The data of the inbox. Questions and answers are cut to how they begin, and go in as ``said``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.oversight.inbox.reader import InboxItem
from interlock.oversight.markup import render, said
from interlock.oversight.pages import KEYS, frame_of, item_of, time_left
from interlock.oversight.views import View

STATES = ("pending", "approved", "rejected", "expired", "released")
QUESTION, ANSWER = 160, 320
"""Characters that are shown."""
SHORT = 6

_MISSING: Mapping[str, str] = {
    "ROLE_SEES_NO_CONTENT": "What was asked and answered is for reviewers and admins.",
    "SESSION_NOT_COVERED": "Your role does not cover the sessions of this key and agent type.",
    "HELD_NOT_FOUND": "Its text is deleted: it was decided, it expired, or it was handed out.",
    "FURTHER_DOWN": "How it begins is shown when fewer are above it; open it to read it.",
    "CHAIN_BROKEN": "The chain of its session does not verify, so nothing that rests on it is shown.",
}


def inbox_page(view: View, items: Sequence[InboxItem], status: str, now_us: int, *, more: bool) -> str:
    """Return what is held in one *status*: whose it is, what was asked, how the answer begins, and the time that is left for it."""
    return render(
        "queue.html", title="Held responses", **frame_of(view), here="reviews", keyboard=KEYS,
        items=[_item(one, now_us) for one in items], more=more, states=STATES, status=status, waits=status == "pending",
    )  # fmt: skip


def _item(one: InboxItem, now_us: int) -> Mapping[str, Any]:
    item: audit_pb2.HeldItem = one.item
    return {
        **item_of(item), "left": time_left(item.expires_at, now_us),
        "name": f"{one.agent or 'agent'} …{item.session_id[-SHORT:]}",
        "question": said(_begin(one.question, QUESTION)),
        "answer": said(_begin(one.answer, ANSWER)) if one.answer is not None else None,
        "missing": _MISSING.get(one.missing, f"It cannot be shown now: {one.missing}."),
    }  # fmt: skip


def _begin(text: str, most: int) -> str:
    flat = " ".join(text[: most * 2].split())
    return flat if len(flat) <= most and len(text) <= most * 2 else f"{flat[:most]}…"
