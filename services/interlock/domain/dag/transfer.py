"""What goes from a window into the context of one that continues it: sizes and the choice (SPEC-004 §8, §12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

BYTES_PER_TOKEN = 3
"""UTF-8 bytes that count as one token. English has about four to one of a model's own, so that this errs on the full side:
which tokenizer the provider's model has, nobody here knows, and a budget must not be overrun."""

LEAST_FIDELITY = 0.80
"""Fidelity below which a summary is not used (§12.3)."""

SUMMARY_IMPORTANCE = 0.95
"""Weight of a summary as a fact of the child's envelope (§12.2)."""


class Transfer(IntEnum):
    """What is transferred; numbers equal ``interlock.api.session.v1.TransferType``."""

    NONE = 0
    FULL_CONTEXT = 1
    SUMMARY = 2
    FACTS_ONLY = 3
    RESULT_ONLY = 4


def tokens(text: str) -> int:
    """Return how many tokens *text* is counted as."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def available(token_budget: int, *, query: int, system: int) -> int:
    """Return what a budget leaves for context, never less than nothing (§8.2)."""
    return max(0, token_budget - query - system)


def fits(needed: int, available_budget: int) -> bool:
    """Tell whether *needed* tokens are at most 0.60 of what is available, in whole numbers (§8.2)."""
    return needed * 100 <= available_budget * 60


def summary_size(response: int, available_budget: int) -> int:
    """Return the tokens that a summary is asked for: a quarter of the response, at most 0.30 of the budget (§12.2)."""
    return min(response * 25 // 100, available_budget * 30 // 100)


def select(*, response: int, deferred: int, summary: int, available_budget: int) -> Transfer:
    """Return the transfer type of §8.2 for a parent of so many tokens.

    *summary* is the size of the summary, or the size that it would be asked for in; 0 means that there can be none.
    """
    if fits(response + deferred, available_budget):
        return Transfer.FULL_CONTEXT
    if summary and fits(summary + deferred, available_budget):
        return Transfer.SUMMARY
    return Transfer.FACTS_ONLY if fits(deferred, available_budget) else Transfer.RESULT_ONLY


def is_faithful(fidelity: float) -> bool:
    """Tell whether a summary of that fidelity may be used; what is no number is not."""
    return LEAST_FIDELITY <= fidelity <= 1.0


_CONCLUDES = re.compile(
    r"\W*(?:(?:in (?:conclusion|summary|short|sum)|to (?:conclude|summari[sz]e|sum up)"
    r"|overall|therefore|thus|hence|consequently)\b"
    r"|(?:the |our |my )?(?:final |overall )?(?:conclusion|result|answer|summary|verdict|recommendation)s?"
    r"(?: is\b| are\b|\W*:))",
    re.IGNORECASE,
)


def conclusion(sentences: Sequence[str], most: int) -> str:
    """Return the result of an answer in its own sentences, never a part of one (RESULT_ONLY, §8.1).

    That is what follows the last sentence that announces a conclusion; without one, the first sentence and the last. Of
    more than *most* tokens the later sentences are left out, but one always stays.
    """
    announced = [place for place, sentence in enumerate(sentences) if _CONCLUDES.match(sentence)]
    kept = list(sentences[announced[-1] :] if announced else dict.fromkeys([*sentences[:1], *sentences[-1:]]))
    while len(kept) > 1 and tokens(" ".join(kept)) > most:
        kept.pop()
    return " ".join(kept)
