"""Leads: the line with a colon above a list, and what its items inherit from it (SPEC-005 §3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.dpe.claims.wording import SUBJECTS
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.text import Text, joined
from interlock.dpe.text.wordlists import word_set

_PRESENTING = pattern(
    r"\b(?:here(?:\s+(?:is|are|'s)|'s)|below\s+(?:is|are)|(?:the\s+)?following\s+\w+|as\s+follows)\b", ignore_case=True
)
_HERE = pattern(r"(?:(?:sure|certainly|of\s+course)[,!]\s+)?\b(?:here|below)(?:'s|\s+(?:is|are))\s+", ignore_case=True)
_RUNS_ON = pattern(
    r"(?:\b(?:is|are|was|were|will|would|can|could|may|might|must|should|shall|to|by|of|for|with|from|include|includes"
    r"|included|including|involve|involves|offers?|provides?|contains?|has|have|had|not|that)|n't)\s*:\z",
    ignore_case=True,
)  # fmt: skip
_POINTER = pattern(
    r"[\[(]?\s*(?:(?:see|source|from|ref|reference)s?:?\s+)?(?:passage|source|doc(?:ument)?|fact|context|article|reference"
    r"|excerpt|citation|paragraph)s?\s*#?\d{1,3}(?:\s*(?:,|and|&|-|–)\s*(?:passage )?#?\d{1,3}){0,6}\s*[\])]?\s*[.:]?",
    ignore_case=True,
)  # fmt: skip
_VERBS_OF_LEADS = word_set("be base provide give follow summarize can could will would explain help do go")


def with_lead(lead: str, item: Text, tokens: Sequence[Any]) -> Text:
    """Return an item without a subject as a claim under its lead.

    "The firm will:" and "open three plants" are one sentence. A step under "Here is how to …:" is complete by itself
    and needs no lead; nor does a reference to a passage.
    """
    words = [token for token in tokens if not token.is_punct and not token.is_space]
    does = any(token.pos_ in {"VERB", "AUX"} and token.dep_ in {"ROOT", "conj"} for token in words)
    runs_on = _RUNS_ON.search(lead) is not None
    if is_source_reference(item.chars) or (does and not runs_on and _PRESENTING.search(lead)):
        return item
    line = _HERE.sub("", lead, count=1)
    line = line.rstrip(": ") if runs_on else line
    at = item.origin[0]
    if runs_on and words and words[0].pos_ != "PROPN" and item.chars[1:2].islower():
        item = Text(item.chars[0].lower() + item.chars[1:], item.starts, item.ends)
    return joined([Text(line, [at] * len(line), [at] * len(line)), item])


def is_source_reference(text: str) -> bool:
    """Whether a text is only a reference to a source: (Passage 2), [Source 1, 3]."""
    return _POINTER.fullmatch(text.strip()) is not None


def is_announcement(text: str, tokens: Sequence[Any]) -> bool:
    """Whether a line only announces what follows: "Here is a summary of the report in 80 words:"."""
    if not text.rstrip().endswith(":") or not _PRESENTING.search(text):
        return False
    verbs = [t for t in tokens if t.pos_ in {"VERB", "AUX"} and t.dep_ not in {"amod", "acl", "relcl"}]
    subjects = [t for t in tokens if t.dep_ in SUBJECTS and t.lower_ not in {"i", "we"}]
    return len(subjects) <= 1 and all(t.lemma_.lower() in _VERBS_OF_LEADS for t in verbs)
