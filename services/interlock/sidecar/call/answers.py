"""Earlier answers of the model inside a user's message: an agent does not rest on itself (ATT-5).

Templates that refine an answer, and those that carry the conversation as text, bring the model's own words in the user's role.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from interlock.sidecar.call import labels
from interlock.sidecar.call.labels import LabelPart

_SPEAKER = re.compile(
    r"[ \t]*(?:[-*>] )?(?:\*\*)?(?:AI|(?:AI |virtual )?assistant|chatbot|assistent|asistente|assistente|asystent|ассистент|помощник|助手|助理"
    r"|アシスタント|어시스턴트)(?: (?:message|said|response))?(?:\*\*)?[ \t]*[:：](?:\*\*)?",
    re.IGNORECASE,
)
_USER = re.compile(r"^[ \t]*(?:[-*>] )?(?:\*\*)?(?:human|user)(?:\*\*)?[ \t]*:", re.IGNORECASE | re.MULTILINE)
_EARLIER = re.compile(
    r"\b(?:existing|previous|earlier|initial|prior) (?:answer|summary|response|output)\b[^:.?!\n]{0,60}:",
    re.IGNORECASE,
)


def is_history(data: str) -> bool:
    """Whether a piece of JSON is a conversation as a client keeps it: a list of messages with their roles."""
    if '"role"' not in data or not data.startswith("["):
        return False
    try:
        listed = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return bool(listed) and all(isinstance(one, dict) and {"role", "content"} <= one.keys() for one in listed)


def without(text: str) -> str:
    """Return a text of the system without what the model said in a conversation that is told in it."""
    if not _USER.search(text):
        return text
    own, said = apart(text.split("\n"))
    return "\n".join(own) if said else text


def apart(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return lines of the user's own, and what the model said before; that ends at a blank line, another speaker or a lead."""
    own: list[str] = []
    said: list[str] = []
    answered = False
    for line in lines:
        opening = _SPEAKER.match(line) or _EARLIER.search(line)
        if opening is not None:
            own.append(line[: opening.start()])
            said.append(line[opening.end() :])
            answered = True
            continue
        answered = answered and bool(line.strip()) and not _ends(line)
        (said if answered else own).append(line)
    return own, said


def _ends(line: str) -> bool:
    label = labels.read(line)
    return labels.leads(line) or (label is not None and label.part is LabelPart.OWN)
