"""The transfer from a window into the context of its child: sizes, and the choice of what to transfer (SPEC-004 §8, §12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

BYTES_PER_TOKEN = 3
"""UTF-8 bytes that count as one token. English has about four bytes for each token of a model, so the count is too high rather
than too low: the tokenizer of the provider's model is unknown here, and a budget must not be exceeded."""

LEAST_FIDELITY = 0.80
"""Fidelity below which a summary is not used (§12.3)."""

SUMMARY_IMPORTANCE = 0.95
"""Weight of a summary as a fact of the child's envelope (§12.2)."""


class Transfer(IntEnum):
    """What is transferred. The numbers equal ``interlock.api.session.v1.TransferType``."""

    NONE = 0
    FULL_CONTEXT = 1
    SUMMARY = 2
    FACTS_ONLY = 3
    RESULT_ONLY = 4


def tokens(text: str) -> int:
    """Return the number of tokens that *text* counts as."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def available(token_budget: int, *, query: int, system: int) -> int:
    """Return the tokens that a budget leaves for context, never below 0 (§8.2)."""
    return max(0, token_budget - query - system)


def fits(needed: int, available_budget: int) -> bool:
    """Tell whether *needed* tokens are at most 0.60 of the available ones, in whole numbers (§8.2)."""
    return needed * 100 <= available_budget * 60


def summary_size(response: int, available_budget: int) -> int:
    """Return the size to request for a summary, tokens: a quarter of the response, at most 0.30 of the budget (§12.2)."""
    return min(response * 25 // 100, available_budget * 30 // 100)


def select(*, response: int, deferred: int, summary: int, available_budget: int) -> Transfer:
    """Return the transfer type of §8.2 for a parent with this many tokens.

    *summary* is the size of the summary, or the size to request; 0 means that no summary is possible.
    """
    if fits(response + deferred, available_budget):
        return Transfer.FULL_CONTEXT
    if summary and fits(summary + deferred, available_budget):
        return Transfer.SUMMARY
    return Transfer.FACTS_ONLY if fits(deferred, available_budget) else Transfer.RESULT_ONLY


def is_faithful(fidelity: float) -> bool:
    """Tell whether a summary of this fidelity may be used. NaN is refused."""
    return LEAST_FIDELITY <= fidelity <= 1.0


_CONCLUDES = re.compile(
    r"\W*(?:(?:in (?:conclusion|summary|short|sum)|to (?:conclude|summari[sz]e|sum up)"
    r"|overall|therefore|thus|hence|consequently)\b"
    r"|(?:the |our |my )?(?:final |overall )?(?:conclusion|result|answer|summary|verdict|recommendation)s?"
    r"(?: is\b| are\b|\W*:))",
    re.IGNORECASE,
)


def conclusion(sentences: Sequence[str], most: int) -> str:
    """Return the result of an answer in its own whole sentences (RESULT_ONLY, §8.1).

    The result starts at the last sentence that announces a conclusion. Without one, it is the first sentence and the last.
    Later sentences are left out where they exceed *most* tokens, but one always remains.
    """
    announced = [place for place, sentence in enumerate(sentences) if _CONCLUDES.match(sentence)]
    kept = list(sentences[announced[-1] :] if announced else dict.fromkeys([*sentences[:1], *sentences[-1:]]))
    while len(kept) > 1 and tokens(" ".join(kept)) > most:
        kept.pop()
    return " ".join(kept)
