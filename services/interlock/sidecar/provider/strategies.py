"""How an answer is produced: in one pass, or generated, verified and refined (SPEC-008 §3 and §5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.breaker import FORCED_STRATEGY, BreakerState, strategy_under
from interlock.domain.errors import Refused
from interlock.sidecar.call.call import Call
from interlock.sidecar.openai import completion, strictjson
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.provider import prompts
from interlock.sidecar.provider.calls import ProviderCalls
from interlock.sidecar.trail.events import GENERATE

PUSH, PULL, REFLEXIVE = "push", "pull", FORCED_STRATEGY
FAN_OUT, FAN_IN, BATCH, HIERARCHICAL, AGENTIC = "fan-out", "fan-in", "batch", "hierarchical", "agentic"
"""Strategies that say how windows belong together; each window of them is answered by push or reflexive."""

PARTS: Mapping[str, tuple[str, ...]] = {BATCH: (BATCH, FAN_OUT), HIERARCHICAL: (HIERARCHICAL, FAN_OUT, FAN_IN)}
"""The strategies that a composite one uses: its caller must be allowed each of them."""

VERIFY, REFINE = "verify", "refine"
"""Passes besides the answer itself, as the trail names them."""
LOOP = frozenset({GENERATE, VERIFY, REFINE})
"""Passes of a reflexive answer."""

VERIFY_TEMPERATURE, REFINE_TEMPERATURE = 0.2, 0.3
LEAST_FOR_FINDINGS = 512
"""Tokens that a review may take even where the caller allows its answer fewer."""

Pass = Callable[[str, Mapping[str, Any]], Awaitable[Completion]]
"""Makes one provider call, named by its pass: generate, verify, refine, continue or stitch."""

_LIMITS = ("max_tokens", "max_completion_tokens")
_OF_THE_ANSWER = frozenset({
    "n", "response_format", "stop", "logprobs", "top_logprobs", "logit_bias", "parallel_tool_calls", "verbosity",
    "presence_penalty", "frequency_penalty", "prediction",
})  # fmt: skip
"""Parameters that shape the answer: a review or a bridge is none."""


@dataclass(frozen=True)
class Produced:
    """An answer and how it was produced."""

    answer: Completion
    strategy: str
    revision: str
    """Pass that made it out of all passes, such as 2/3 (SPEC-008 §5.5); 1/3 where no call was left for the revision."""
    unresolved: int = 0
    """Issues that a review named and that no call was left to revise."""


def shape_of(call: Call) -> str:
    """Return what a window is a part of; empty where its answer is all there is."""
    if call.shape:
        return call.shape
    return call.asked.strategy if call.asked.strategy in {FAN_OUT, FAN_IN} else ""


def initial(state: BreakerState, safety_mode: str | None, asked: str = PUSH) -> str:
    """Return how a window is answered: as *asked*, but reflexive under a half-open breaker or in strict mode (BRK-2)."""
    plain = PULL if asked == PULL else PUSH
    return strategy_under(state, REFLEXIVE if safety_mode == "strict" or asked == REFLEXIVE else plain)


def least_calls(strategy: str, choices: int) -> int:
    """Return the provider calls that an answer takes at least: a reflexive one has each choice reviewed."""
    return 1 + choices if strategy == REFLEXIVE else 1


async def produce(strategy: str, make: Pass, body: Mapping[str, Any], calls: ProviderCalls) -> Produced:
    """Return the answer to *body* by *strategy*. The refusal of any pass ends it."""
    generated = await make(GENERATE, body)
    if strategy == REFLEXIVE:
        return await _reviewed(make, body, generated, calls)
    return Produced(generated, PULL if strategy == PULL else PUSH, "1/1")


async def _reviewed(make: Pass, body: Mapping[str, Any], generated: Completion, calls: ProviderCalls) -> Produced:
    """Return *generated*, with every text choice that a review found fault with refined, as far as calls are left for it.

    A tool call is not rewritten, so where there is nothing but tool calls there is nothing to review: that was a push. Every
    choice is reviewed before one is refined, so that no refinement takes the call of a review.
    """
    texts = {choice["index"]: text for choice in generated.choices if (text := completion.plain_text(choice))}
    if not texts:
        return Produced(generated, PUSH, "1/1")
    found = {index: findings(await make(VERIFY, verification(body, text))) for index, text in texts.items()}
    flawed = [index for index, issues in found.items() if issues]
    refined = {}
    for index in flawed:
        if not calls.left:
            break
        revised = await make(REFINE, refinement(body, texts[index], found[index]))
        refined[index] = {**_text_choice(revised), "index": index}
    unresolved = sum(len(found[index]) for index in flawed if index not in refined)
    if not refined:
        return Produced(generated, REFLEXIVE, "1/3" if unresolved else "1/2", unresolved)
    choices = [refined.get(choice["index"], choice) for choice in generated.choices]
    answer = completion.assembled(generated.completion, choices, generated.usage)
    return Produced(answer, REFLEXIVE, "2/3", unresolved)


def _text_choice(answer: Completion) -> Mapping[str, Any]:
    """Return the one choice of a rewriting call; refused when it is no text, because then nothing was rewritten."""
    choice = answer.choices[0]
    if completion.plain_text(choice) is None:
        raise malformed("NO_TEXT")
    return choice


def findings(review: Completion) -> list[str]:
    """Return the issues that a review names. What is not exactly the form asked for counts as an issue itself."""
    text = completion.plain_text(review.choices[0])
    if text is None:
        return ["The review gave no findings that can be read."]
    try:
        value = strictjson.loads(text.strip().encode("utf-8", "surrogatepass"), max_depth=4)
        issues = value["issues"] if isinstance(value, dict) and value.keys() == {"issues"} else None
    except (Refused, ValueError):
        issues = None
    if not isinstance(issues, list) or not all(isinstance(issue, str) for issue in issues):
        return [text]
    return list(issues[: prompts.MOST_LISTED])


def verification(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the request for a review of *text* against the context of *body*."""
    asked = review_request(body, [*body["messages"], _user(prompts.verification(text))])
    asked["messages"] = [_system(f"{prompts.FINDINGS_FORM}\n{prompts.QUOTATIONS}"), *asked["messages"]]
    return {**asked, "temperature": VERIFY_TEMPERATURE}


def refinement(body: Mapping[str, Any], text: str, issues: Sequence[str]) -> dict[str, Any]:
    """Return the request for a revision of *text*, in the form that the caller asked for."""
    kept = {name: value for name, value in body.items() if name != "n"}
    if "tools" in kept:
        kept["tool_choice"] = "none"
    messages = [_system(prompts.QUOTATIONS), *body["messages"], _user(prompts.refinement(text, issues))]
    return {**kept, "messages": messages, "temperature": REFINE_TEMPERATURE}


def review_request(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a request next to the answer's own: the same model and account, no tool, and room for a review."""
    kept = {name: value for name, value in body.items() if name not in _OF_THE_ANSWER}
    kept.update({name: max(int(kept[name]), LEAST_FOR_FINDINGS) for name in _LIMITS if name in kept})
    if "tools" in kept:
        kept["tool_choice"] = "none"
    return {**kept, "messages": list(messages)}


def _system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}
