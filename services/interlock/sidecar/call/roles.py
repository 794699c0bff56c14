"""The messages of a chat request in their roles: which texts are sources, and which show what was asked for (ATT-5).

Results of tools and the context in system messages are sources, and so is given text inside a user's message (``sources``). A
user's own words are evidence of what the user said and wants. An order in a system message (*You are a helpful assistant.*) states
nothing about the world. What the model said earlier is no source: an agent must not rest on itself. Arguments of its tool calls
are context only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.sidecar.call import transcripts

FACT_LIMIT = 32_768
NEUTRAL = 0.5

USER, INSTRUCTION, SOURCE, ANSWERED = "user", "instruction", "source", "answered"
"""Kinds of said texts (dpe.proto)."""

MOST_READ = 300_000
"""Characters of one request that are searched for given text (``sources``)."""

_RESULTS = ("tool", "function")
_SYSTEM = ("system", "developer")
_BREAK = re.compile(r"[^\S\n]*\n\s*")
_OPEN_END = re.compile(r"[\w,)%’'\"`-]\s*\Z")
_GOES_ON = re.compile(r"\s*(?:[a-z][a-z'’-]*|[$€£]?\d[\d.,]*%?)(?=[ ,.;:!?)]|\Z)(?=.*[,.!?]|(?:\s*\S+){4})")
_LEAST_WRAPPED = 40
"""Characters of a line from which prose is wrapped; a shorter one is a line of its own."""
_MOST_WRAPPED = 100_000
_NO_PROSE = re.compile(r"\s*(?:\d{1,3}[.)]\s|[\w-]{1,24}:\s)|.*[={}|\t]")
_NUMBER_OF_A_LINE = re.compile(r"\(?\d{1,3}[.)]")
_BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|cf|approx|No|Nos|Art|Arts|Sec|Fig|Eq|Vol|pp|p|ca"
    r"|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|U\.S|U\.K|a\.m|p\.m)\.$"
)
_ROLE_OF_THE_MODEL = re.compile(
    r"[\s*#>-]*(?:you are|you're|you act|act as|your (?:name|role|task|job|goal|purpose) is)\b", re.IGNORECASE
)
_ORDER = re.compile(
    r"[\s*#>-]*(?:\d{1,2}[.)] )?(?:please |always |never |only |if |when |whenever |unless |for each |you (?:must|should|can|may|will|have)"
    r"\b|do not |don't |answer|respond|reply|use |be |keep |make sure|ensure|avoid|think|follow|provide|write|return|given |based on"
    r"|help |call |cite|explain|speak|ask |output|format|summari[sz]e|translate|refuse|decline|stay|let's|remember|consider|"
    r"instructions?|rules?|guidelines?|respond|the user (?:will|may|can))",
    re.IGNORECASE,
)
_NUMBER_OF_AN_ORDER = re.compile(r"\A[\s*#>-]*\d{1,2}[.)] ")
_WORKINGS = re.compile(
    r"\b(?:tool calls?|final_answer|(?:these|following|notional|right|available) tools?|access to [\w ]{0,20}tools?|observations?\b.*\bstring"
    r"|action/observation|(?:previous|next) action|only way to complete|final output|stuck on a loop)\b|\A(?:now,? )?begin!?\Z"
    r"|\A(?:takes|accepts) inputs?:"
    r"|\A(?:here|these|below) are (?:the |a few |some )?(?:rules|examples|tools|guidelines|instructions)\b[^.]*:\Z",
    re.IGNORECASE,
)
"""Of how the model is to work: tools, calls and the form of its output."""
_SCHEMA = re.compile(r"['\"]type['\"]: ?['\"]\w+['\"]")
_ANSWERS = re.compile(
    r"(?:final|structured|submit|return)_?(?:result|answer|output|response)s?|answer|response|respond(?:_to_user)?|output",
    re.IGNORECASE,
)
_MAY_ANSWER = re.compile(r"reply(?:_to_user)?|submit|finish|done|complete|attempt_completion", re.IGNORECASE)
_TAKES_ANSWER = re.compile(
    r"\b(?:the |a |your )?final (?:answer|response|result|output)\b|\b(?:answers?|replies|reply|responds?|responses?) to the (?:user|question|customer)\b",
    re.IGNORECASE,
)
_TEXT_FOR_THE_USER = re.compile(r"(?:final_?)?(?:answer|response|reply|result|output)", re.IGNORECASE)
_NAME_OF_A_TYPE = re.compile(r"[A-Z][A-Za-z0-9]*")
_FIGURE = re.compile(r"\d")
_INNER_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w'’-]+")


@dataclass(frozen=True)
class Roles:
    """The messages of a request, taken apart."""

    facts: tuple[common_pb2.Fact, ...]
    said: tuple[dpe_pb2.SaidText, ...]
    question: str
    """The last user message in its own words; the whole of it where it has none."""
    earlier: tuple[str, ...] = ()
    """Ids of the sources that stood before the last user message. What comes before any answer was given for the first one."""


def read(messages: Sequence[Mapping[str, Any]], *, most_facts: int, tools: Collection[str] = ()) -> Roles:
    """Return the sources, the said texts and the question of *messages*.

    A line of a system message that only tells again one of the declared *tools*, by name, states nothing. Neighbouring sentences of one message become one fact where there would be more than *most_facts*.
    """
    from interlock.sidecar.call import sources  # on use: a sidecar that nobody calls stays small

    facts: list[common_pb2.Fact] = []
    said: list[dpe_pb2.SaidText] = []
    earlier: set[str] = set()
    question = ""
    turns = _turns(messages)
    asked_last = max((number for number, turn in turns.items() if turn.own), default=-1)
    searched = _searched(messages)
    for number, message in enumerate(messages):
        role, text = message["role"], content_text(message)
        if role == "user":
            turn = turns[number]
            parts = sources.read(turn.own) if number in searched else sources.Parts((), turn.own)
            found = list(_pieces(turn.result, whole=number in searched and sources.data(turn.result)))
            found += [piece for source in parts.sources for piece in _pieces(source.text, whole=source.whole)]
            facts += _facts(number, found)
            said += _said(f"m{number}e", ANSWERED, _bounded([turn.echo, parts.answered]))
            said += _said(f"m{number}u", USER, _bounded([parts.own]))
            question = parts.own or turn.own or question or text
        elif role in _SYSTEM:
            found, orders = _told(text, tools) if number in searched else (sentences(text), [])
            facts += _facts(number, found)
            said += _said(f"m{number}i", INSTRUCTION, orders)
        elif role in _RESULTS:
            facts += _facts(number, list(_pieces(text, whole=number in searched and sources.data(text))))
        elif role == "assistant" and number < asked_last:
            following = turns.get(number + 1)
            told = transcripts.without_call(text) if following and (following.result or following.echo) else text
            said += _said(f"m{number}a", ANSWERED, _bounded([told]))
        if number < asked_last and any(message["role"] == "assistant" for message in messages[:asked_last]):
            earlier = {fact.id for fact in facts}
    kept = tuple(_joined(facts, most_facts))
    return Roles(kept, tuple(said), question, tuple(fact.id for fact in kept if fact.id in earlier))


def _turns(messages: Sequence[Mapping[str, Any]]) -> dict[int, transcripts.UserMessage]:
    """Return whose words each message in the user's role holds, by its number."""
    turns: dict[int, transcripts.UserMessage] = {}
    before = ""
    for number, message in enumerate(messages):
        if message["role"] == "user":
            turns[number] = transcripts.read(content_text(message), before)
        elif message["role"] == "assistant":
            before = content_text(message)
    return turns


def _searched(messages: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the messages that are searched for given text: the newest, as far as ``MOST_READ`` goes.

    The user's words in an older one are all taken for own words, and what an older system message says for sources.
    """
    left, found = MOST_READ, set[int]()
    for number in range(len(messages) - 1, -1, -1):
        left -= len(content_text(messages[number]))
        if left < 0:
            break
        found.add(number)
    return found


def shown(facts: Iterable[common_pb2.Fact]) -> Iterator[dpe_pb2.SaidText]:
    """Yield sources of a request that brings facts of its own: only the arguments of tools may rest on them."""
    for fact in facts:
        yield dpe_pb2.SaidText(id=f"s{fact.id}", text=fact.content, kind=SOURCE)


def declared(body: Mapping[str, Any]) -> tuple[dpe_pb2.DeclaredTool, ...]:
    """Return the functions that a checked request declares."""
    forced = _forced(body)
    functions = [*(tool["function"] for tool in body.get("tools", ())), *body.get("functions", ())]
    return tuple(
        dpe_pb2.DeclaredTool(
            name=function["name"],
            description=function.get("description", ""),
            parameters_json=json.dumps(function["parameters"]) if "parameters" in function else "",
            returns_answer=_returns_answer(function, forced),
        )
        for function in functions
    )


def _forced(body: Mapping[str, Any]) -> str:
    """Return the function that the caller makes the model call; empty when the model chooses."""
    choice = body.get("tool_choice") or body.get("function_call")
    if not isinstance(choice, dict):
        return ""
    return str(choice.get("function", choice).get("name", ""))


def _returns_answer(function: Mapping[str, Any], forced: str) -> bool:
    """Whether a function is the form of the answer and does nothing: frameworks ask for structured answers so."""
    name, described = function["name"], function.get("description", "")
    told = "ends this conversation" in described or (_takes_one_text(function) and _TAKES_ANSWER.search(described))
    ends = _MAY_ANSWER.fullmatch(name) and _takes_one_text(function)
    return bool(_ANSWERS.fullmatch(name) or told or ends) or (name == forced and bool(_NAME_OF_A_TYPE.fullmatch(name)))


def _takes_one_text(function: Mapping[str, Any]) -> bool:
    """Whether a function takes a text for the user and nothing else: whoever gets it, no recipient or amount is chosen."""
    properties = (function.get("parameters") or {}).get("properties") or {}
    if len(properties) != 1:
        return False
    ((name, schema),) = properties.items()
    kind = schema.get("type", "string") if isinstance(schema, dict) else ""
    return kind in ("string", "any") and _TEXT_FOR_THE_USER.fullmatch(name) is not None


def content_text(message: Mapping[str, Any]) -> str:
    """Return the content of a message as one text."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or part.get("refusal") or "" for part in content)


def sentences(text: str) -> list[str]:
    """Cut *text* at line ends, then after full stops that end a sentence. Nothing of it is lost but white space.

    A line that prose was wrapped at is no end: *carries a warranty of 36 months from* and *the date of purchase* are one sentence.
    """
    found: list[str] = []
    for line in _BREAK.split(_unwrapped(text)):
        start = 0
        for boundary in _BOUNDARY.finditer(line):
            head = line[start : boundary.end()].strip()
            if _ABBREVIATION.search(head[-16:]) or _NUMBER_OF_A_LINE.fullmatch(head):
                continue
            found.append(head)
            start = boundary.end()
        found.append(line[start:].strip())
    return [sentence for sentence in found if sentence]


def _unwrapped(text: str) -> str:
    """Return *text* with the lines joined that only its width has parted. Lists, tables, records and code keep their lines."""
    lines = text.split("\n")
    joined = [lines[0]]
    width = len(lines[0])
    for line in lines[1:]:
        if width >= _LEAST_WRAPPED and len(joined[-1]) < _MOST_WRAPPED and _runs_on(joined[-1], line):
            joined[-1] = f"{joined[-1].rstrip()} {line.lstrip()}"
        else:
            joined.append(line)
        width = len(line)
    return "\n".join(joined)


def _runs_on(line: str, following: str) -> bool:
    """Whether a sentence of *line* goes on in the line after it: nothing ends it, and the next begins in small letters."""
    wraps = _OPEN_END.search(line[-_LEAST_WRAPPED:]) and _GOES_ON.match(following)
    return bool(wraps) and not any(map(_NO_PROSE.match, (line, following)))


def _told(text: str, tools: Collection[str]) -> tuple[list[str], list[str]]:
    """Return what a system message states, and what it orders. An order with a figure or a name in it states it, too."""
    from interlock.sidecar.call import answers, sources

    text = answers.without(transcripts.without_examples(text))
    parts = sources.read(text)
    if parts.sources and any(source.whole for source in parts.sources):
        found = [piece for source in parts.sources for piece in _pieces(source.text, whole=source.whole)]
        rest = sentences(parts.own)
    else:
        found, rest = [], sentences(text)
    rest = [sentence for sentence in rest if not _is_working(sentence, tools)]
    orders = [sentence for sentence in rest if _is_order(sentence)]
    return [*(sentence for sentence in rest if not _is_order(sentence)), *found], _bounded(orders)


def _is_working(sentence: str, tools: Collection[str]) -> bool:
    """Whether a sentence only tells how tools are called: it is about no case, and shows no value of a call."""
    told_again = sentence.lstrip("-*• `").partition(":")[0].rstrip("` ") in tools
    return told_again or bool(_SCHEMA.search(sentence) or _WORKINGS.search(_NUMBER_OF_AN_ORDER.sub("", sentence)))


def _is_order(sentence: str) -> bool:
    sentence = _NUMBER_OF_AN_ORDER.sub("", sentence)
    if _FIGURE.search(sentence):
        return False
    return bool(_ROLE_OF_THE_MODEL.match(sentence) or (_ORDER.match(sentence) and not _INNER_NAME.search(sentence)))


def _pieces(text: str, *, whole: bool) -> Iterator[str]:
    """Yield a source as facts: in sentences, or whole where its lines mean nothing apart."""
    if whole and len(text) <= FACT_LIMIT:
        yield text
    else:
        yield from sentences(text)


def _facts(message: int, pieces: Sequence[str]) -> list[common_pb2.Fact]:
    return [
        common_pb2.Fact(id=f"m{message}s{number}", content=piece, importance=NEUTRAL)
        for number, piece in enumerate(pieces)
        if piece.strip()
    ]


def _said(prefix: str, kind: str, texts: Sequence[str]) -> list[dpe_pb2.SaidText]:
    return [
        dpe_pb2.SaidText(id=f"{prefix}{number}", text=text, kind=kind)
        for number, text in enumerate(texts)
        if text.strip()
    ]


def _bounded(texts: Sequence[str]) -> list[str]:
    """Return *texts* in pieces that are no longer than a fact."""
    return [text[at : at + FACT_LIMIT] for text in texts for at in range(0, len(text), FACT_LIMIT)]


def _joined(facts: Sequence[common_pb2.Fact], most: int) -> list[common_pb2.Fact]:
    """Return *facts*, neighbours of one message joined in pairs until they are no more than *most*, where that can be."""
    kept = list(facts)
    while len(kept) > most:
        pairs: list[common_pb2.Fact] = []
        paired = False
        for fact in kept:
            paired = not paired and bool(pairs) and _may_join(pairs[-1], fact)
            if paired:
                content = f"{pairs[-1].content}\n{fact.content}"
                pairs[-1] = common_pb2.Fact(id=pairs[-1].id, content=content, importance=NEUTRAL)
            else:
                pairs.append(fact)
        if len(pairs) == len(kept):
            break
        kept = pairs
    return kept


def _may_join(one: common_pb2.Fact, other: common_pb2.Fact) -> bool:
    same_message = one.id.partition("s")[0] == other.id.partition("s")[0]
    return same_message and len(one.content) + len(other.content) < FACT_LIMIT
