"""Images, sound and files: nobody here can judge them. They are refused by name, or passed and marked, as ``unjudged_media`` says (API-6).

A checked chat request holds them as chat completions have them, whichever API brought them. They are the user's alone: what a tool
brings is a source, which an answer is held against.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from prometheus_client import Counter

from interlock.sidecar.openai.checks import bad, label, one_of, only, text, unsupported

PASSED = Counter(
    "interlock_unjudged_media", "Images, sounds and files that nobody judged, passed to a provider or to a client.",
    ["kind", "direction"],
)  # fmt: skip

IMAGE, AUDIO, FILE = "image", "audio", "file"
KINDS = (IMAGE, AUDIO, FILE)
PARTS: Mapping[str, str] = {"image_url": IMAGE, "input_audio": AUDIO, "file": FILE}
"""Parts of a chat message that are media, by their type."""
REFUSAL = (
    "images, sound and files cannot be analysed, so that none is passed on: unjudged_media=pass passes those of the user, marked and"
    " audited"
)
OF_A_TOOL = (
    "only the user's images, sound and files are passed on: what a tool brings is a source, and nobody can read these"
)

_URL = re.compile(
    r"(?:https?://[^\s]{1,8192}|data:[a-z0-9.+-]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=\s]+)", re.ASCII | re.IGNORECASE
)
_IMAGE = re.compile(r"data:image/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}", re.ASCII)
_FORMATS = ("wav", "mp3")
MOST_OF_A_NAME = 256


@dataclass(frozen=True)
class Media:
    """Media of one direction, each as its kind and its bytes as they were written."""

    found: tuple[tuple[str, str], ...] = ()

    def count(self, kind: str) -> int:
        """Return how many of a kind there are."""
        return sum(each == kind for each, _ in self.found)

    @cached_property
    def digest(self) -> str:
        """``sha256:<hex>`` of all of them, in order."""
        made = hashlib.sha256()
        for kind, written in self.found:
            data = written.encode("utf-8", "surrogatepass")
            made.update(f"{kind} {len(data)} ".encode() + data)
        return f"sha256:{made.hexdigest()}"

    def tell(self, direction: str) -> str | None:
        """Count what is passed on in a direction, request or answer, and return it as its header says it; ``None``: nothing is."""
        for kind, _ in self.found:
            PASSED.labels(kind, direction).inc()
        return ", ".join(f"{direction}-{kind}={self.count(kind)}" for kind in KINDS if self.count(kind)) or None


NO_MEDIA = Media()


def asked(messages: Iterable[Mapping[str, Any]]) -> Media:
    """Return the media of checked chat messages."""
    parts = [part for one in messages if isinstance(one.get("content"), list) for part in one["content"]]
    return Media(tuple((PARTS[part["type"]], _written(part)) for part in parts if part["type"] in PARTS))


def place_of(messages: Sequence[Mapping[str, Any]], kind: str, *, without: str = "") -> str:
    """Return where the first part of a kind stands, and one whose bytes do not begin with *without* where that is given; else empty."""
    for number, one in enumerate(messages):
        for at, part in enumerate(one["content"] if isinstance(one.get("content"), list) else ()):
            if PARTS.get(part["type"]) == kind and not (without and _written(part).startswith(without)):
                return f"messages[{number}].content[{at}]"
    return ""


def answered(choices: Iterable[Mapping[str, Any]]) -> Media:
    """Return the media of the choices of an answer."""
    found: list[tuple[str, str]] = []
    for choice in choices:
        message = choice["message"]
        found += [(IMAGE, each["image_url"]["url"]) for each in message.get("images", ())]
        found += [(AUDIO, message["audio"]["data"])] if "audio" in message else []
    return Media(tuple(found))


def _written(part: Mapping[str, Any]) -> str:
    held = part[part["type"]]
    return str(next(held[name] for name in ("url", "data", "file_data", "file_id") if name in held))


def part(place: str, value: Mapping[str, Any], besides: Sequence[str] = ()) -> dict[str, Any]:
    """Return a checked media part of a chat message; *besides* are fields of it that are accepted and left out."""
    kind = value["type"]
    held = only(place, value, "type", kind, *besides).get(kind)
    return {"type": kind, kind: _READERS[kind](f"{place}.{kind}", held)}


def _image(place: str, value: Any) -> dict[str, Any]:
    given = only(place, value, "url", "detail")
    made = {"url": url(f"{place}.url", given.get("url"))}
    return made | _detail(place, given)


def _detail(place: str, given: Mapping[str, Any]) -> dict[str, str]:
    if "detail" not in given:
        return {}
    return {"detail": one_of(f"{place}.detail", given["detail"], "auto", "low", "high", "original")}


def url(place: str, value: Any) -> str:
    """Return the address or the bytes of an image."""
    if not _URL.fullmatch(text(place, value)):
        raise bad(place, "must be an http(s) address, or data:TYPE;base64,BYTES")
    return str(value)


def base64(place: str, value: Any) -> str:
    """Return bytes in base64."""
    if not _BASE64.fullmatch(text(place, value).rstrip()):
        raise bad(place, "must be base64")
    return str(value)


def _audio(place: str, value: Any) -> dict[str, Any]:
    given = only(place, value, "data", "format")
    form = one_of(f"{place}.format", given.get("format"), *_FORMATS)
    return {"data": base64(f"{place}.data", given.get("data")), "format": form}


def _file(place: str, value: Any) -> dict[str, Any]:
    given = only(place, value, "file_id", "file_data", "filename")
    if ("file_id" in given) == ("file_data" in given):
        raise bad(place, "must have either file_data or file_id")
    made: dict[str, Any] = {}
    if "file_id" in given:
        made["file_id"] = label(f"{place}.file_id", given["file_id"])
    else:
        data = text(f"{place}.file_data", given["file_data"])
        made["file_data"] = url(f"{place}.file_data", data) if data.startswith("data:") else base64(f"{place}.file_data", data)  # fmt: skip
    if "filename" in given:
        name = text(f"{place}.filename", given["filename"])
        if not name.isprintable() or not 1 <= len(name) <= MOST_OF_A_NAME:
            raise bad(f"{place}.filename", f"must be 1 to {MOST_OF_A_NAME} printable characters")
        made["filename"] = name
    return made


_READERS: Mapping[str, Callable[[str, Any], dict[str, Any]]] = {
    "image_url": _image, "input_audio": _audio, "file": _file,
}  # fmt: skip


def voice(param: str, value: Any) -> dict[str, Any]:
    """Return how a request wants an answer spoken."""
    given = only(param, value, "voice", "format")
    form = one_of(f"{param}.format", given.get("format"), "wav", "aac", "mp3", "flac", "opus", "pcm16")
    return {"voice": label(f"{param}.voice", given.get("voice")), "format": form}


def image_of_answer(value: Any) -> dict[str, Any] | None:
    """Return an image of an answer as its bytes, and nothing else; ``None`` for one that is an address: that is a text."""
    held = value.get("image_url") if isinstance(value, dict) else None
    address = held.get("url") if isinstance(held, dict) else None
    if not isinstance(address, str) or not _IMAGE.fullmatch(address):
        return None
    return {"type": "image_url", "image_url": {"url": address}}


def audio_of_answer(value: Any) -> dict[str, Any] | None:
    """Return the sound of an answer with its transcript, which is judged; ``None`` for what has none."""
    if not isinstance(value, dict) or not isinstance(value.get("transcript"), str):
        return None
    data, ends = value.get("data"), value.get("expires_at")
    if not isinstance(data, str) or not _BASE64.fullmatch(data.rstrip()):
        return None
    until = ends if type(ends) is int and ends >= 0 else 0
    return {"id": "", "data": data, "expires_at": until, "transcript": value["transcript"]}


def unreadable(param: str, *, of_a_tool: bool = False) -> Exception:
    """Return the refusal of media that are not passed on."""
    return unsupported(param, OF_A_TOOL if of_a_tool else REFUSAL)
