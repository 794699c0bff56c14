"""Agents that write their tool calls as text: whose words stand in their messages (ATT-5).

A framework of the ReAct kind knows two voices only. It sends a tool's result in the user's role, ``Observation: …``, and where the
agent has answered, its own answer comes back in that role with the user's next words behind it (``New task:``). Its system message
shows, by examples of other tasks, how a call is written. Taken as it stands the agent would rest on itself and on the examples,
and what the tools found would be the user's own words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_OBSERVED = re.compile(r"\s*(?:\*\*)?Observations?(?:\*\*)?:(?:\*\*)?[ \t]*\n?", re.IGNORECASE)
_CALLS = re.compile(
    r"^(?:Calling tools|Thought|Action(?: Input)?|Code):|^<(?:code|tool_call)>", re.IGNORECASE | re.MULTILINE
)
_CALL = re.compile(r"^(?:Calling tools|Action(?: Input)?):", re.IGNORECASE | re.MULTILINE)
_ANSWERS = re.compile(r"\bfinal_?answer\b", re.IGNORECASE)
_NEXT = re.compile(r"^(?:new |next )?(?:task|question)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_FRAME = re.compile(r"(?:Execution logs|Last output from code snippet):", re.IGNORECASE)
_SIGNS = re.compile(r"\\[nrt]|[\W_]+")
_MOST_LABELS = 20
_MOST_COMPARED = 30_000
"""Characters of one text that are compared with what the agent wrote."""
_WORD = re.compile(r"\w+")
_LEAST_ECHOED = 4
"""Words from which a line that the agent wrote before is its own; a shorter one may be what a tool found."""

_WAY_OF_CALLING = re.compile(
    r"^(?:Thought|Action Input)[ \t]*:|^Action[ \t]*:\s*(?:```\w*\s*)?\{", re.IGNORECASE | re.MULTILINE
)
_STEP = re.compile(r"[ \t]*(?:Thought|Action|Action Input|Observation|Code|Final Answer)[ \t]*:", re.IGNORECASE)
_TASK = re.compile(r"[ \t]*(?:Task|Question)[ \t]*:", re.IGNORECASE)
_RULE = re.compile(r"[ \t]*-{3,}[ \t]*$")


@dataclass(frozen=True)
class UserMessage:
    """A message in the user's role, by whose words it holds."""

    result: str = ""
    """What a tool found."""
    echo: str = ""
    """What the agent said itself."""
    own: str = ""
    """The user's words."""


def read(text: str, before: str) -> UserMessage:
    """Return whose words *text* holds; *before* is what the agent wrote last.

    The user's next words stand behind the agent's answer only: what a tool found cannot speak for the user.
    """
    opening = _OBSERVED.match(text)
    if opening is None or not _CALLS.search(before):
        return UserMessage(own=text)
    answered = _ANSWERS.search(before) is not None
    rest = text[opening.end() :]
    end = _end_of_echo(rest, before) if answered else len(rest)
    own_lines = _letters(before)
    side = result = list[str]()
    echo, signs = list[str](), list[str]()
    for line in rest[:end].splitlines():
        signs.append(line)
        if any(map(str.isalnum, line)):
            side = echo if _is_echo(line, own_lines, answered=answered) else result
            side += signs  # a fence belongs to the line behind it
            signs.clear()
    side += signs
    return UserMessage(_text(result), _text(echo), rest[end:].strip())


def without_call(text: str) -> str:
    """Return what an agent writes before a call: the arguments of a call are no answer."""
    call = _CALL.search(text)
    return text[: call.start()].strip() if call else text


def _end_of_echo(text: str, before: str) -> int:
    """Return where the user's words begin: at the first label behind an answer that is wholly the agent's, else at the last label."""
    labels = [match.start() for match in _NEXT.finditer(text)]
    own = _letters(before)
    whole = (at for at in labels[:_MOST_LABELS] if _letters(_FRAME.sub("", text[:at])) in own)
    return next(whole, labels[-1] if labels else len(text))


def _is_echo(line: str, own: str, *, answered: bool) -> bool:
    return _letters(line) in own and (answered or len(_WORD.findall(line)) >= _LEAST_ECHOED)


def _letters(text: str) -> str:
    """Return the letters and digits of a text, so that it is known inside quotation marks and behind escapes, too."""
    return _SIGNS.sub("", text[:_MOST_COMPARED]).casefold()


def _text(lines: Sequence[str]) -> str:
    kept = [line for line in lines if not _FRAME.fullmatch(line.strip())]
    return "\n".join(kept).strip()


def without_examples(text: str) -> str:
    """Return a system message without what shows how a call is written: steps of other tasks state nothing about this one.

    A paragraph is cut from its first step on. *Observation: …* in a message that explains no calls is a text like any other.
    """
    if not _WAY_OF_CALLING.search(text):
        return text
    kept: list[str] = []
    cutting = ruled = False
    for line in text.split("\n"):
        if not line.strip():
            cutting = False
        elif _RULE.match(line):
            cutting, ruled = False, True
            continue
        elif _STEP.match(line) or (ruled and _TASK.match(line)):
            cutting = True
        if line.strip():
            ruled = False
        if not cutting:
            kept.append(line)
    return "\n".join(kept)
