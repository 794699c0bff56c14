"""The messages of a Messages request as chat messages: text, tool calls and their results, thinking, documents (API-2).

A document and a search result are given text: each becomes an element of the user's message, where every front's sources are found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from interlock.sidecar.openai import media
from interlock.sidecar.openai.chat import MAX_MESSAGES
from interlock.sidecar.openai.checks import bad, flag, items, mapping, one_of, only, text, unsupported

MOST_BLOCKS = 4096
RAW_ARGUMENTS = "unreadable_arguments"
"""Field of a tool's input that holds arguments which are no JSON object: an input must be one."""

MOST_OF_A_NAME = 150
"""Characters of a title or a source: an element whose tag is too long is none (``call.blocks``)."""

_CACHE = "cache_control"
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MEDIA = frozenset({"image", "container_upload", "audio", "video"})
_SEPARATOR = "\n\n"

Message = dict[str, Any]


def chat_messages(value: Any, *, media_pass: bool = False) -> list[Message]:
    """Return the chat messages of ``messages``, with the user's images and files where those pass.

    Refused with INVALID_PARAMETER, UNKNOWN_PARAMETER or UNSUPPORTED_CONTENT.
    """
    listed = items("messages", value, MAX_MESSAGES)
    made = [
        one
        for number, item in enumerate(listed)
        for one in _message(f"messages[{number}]", item, media_pass=media_pass)
    ]
    if made[-1]["role"] == "assistant":
        why = "the last message must be the user's: a prefilled answer would be judged without its beginning"
        raise unsupported(f"messages[{len(listed) - 1}]", why)
    return made


def told(param: str, value: Any) -> str:
    """Return a text that is given as a string or as text blocks."""
    if isinstance(value, str):
        return value
    return _SEPARATOR.join(
        _text_block(f"{param}[{number}]", item) for number, item in enumerate(items(param, value, MOST_BLOCKS))
    )


def _message(place: str, value: Any, *, media_pass: bool) -> Iterator[Message]:
    given = only(place, value, "role", "content")
    role = one_of(f"{place}.role", given.get("role"), "user", "assistant", "system")
    content = given.get("content")
    if content is None:
        raise bad(f"{place}.content", "is required")
    if role == "system":
        yield {"role": role, "content": told(f"{place}.content", content)}
    elif isinstance(content, str):
        yield {"role": role, "content": content}
    else:
        read = partial(_user, media_pass=media_pass) if role == "user" else _assistant
        yield from read(f"{place}.content", items(f"{place}.content", content, MOST_BLOCKS))


def _user(param: str, blocks: list[Any], *, media_pass: bool) -> Iterator[Message]:
    """Yield the results of tools, each as a message of its own, then what the user says, and shows where that passes."""
    said: list[str] = []
    shown: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        place = f"{param}[{number}]"
        if _kind(place, block) == "tool_result":
            yield _result(place, block, media_pass=media_pass)
        elif media_pass and (made := _shown(place, block)) is not None:
            shown += [*_told(said), made]
            said = []
        else:
            said.append(_source_or_text(place, block))
    if shown:
        yield {"role": "user", "content": [*shown, *_told(said)]}
    elif said:
        yield {"role": "user", "content": _SEPARATOR.join(said)}


def _told(said: list[str]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": _SEPARATOR.join(said)}] if said else []


def _shown(place: str, block: Any) -> dict[str, Any] | None:
    """Return an image or a PDF as the part of a chat message that it is there; ``None`` for what is none of them."""
    kind = _kind(place, block)
    source = mapping(f"{place}.source", block.get("source", {})) if kind in {"image", "document"} else {}
    if kind == "image":
        only(place, block, "type", "source", _CACHE)
        return {"type": "image_url", "image_url": {"url": _bytes_of(f"{place}.source", source, _IMAGES)}}
    if kind != "document" or source.get("type") != "base64":
        return None
    given = only(place, block, "type", "source", "title", "context", "citations", _CACHE)
    _no_citations(place, given)
    if "context" in given:
        raise unsupported(f"{place}.context", "give the context of a PDF as a text block beside it")
    data = _bytes_of(f"{place}.source", source, ("application/pdf",))
    return {
        "type": "file",
        "file": {"file_data": data, "filename": text(f"{place}.title", given.get("title", "document.pdf"))},
    }


def _bytes_of(place: str, source: Mapping[str, Any], kinds: tuple[str, ...]) -> str:
    """Return what an image or file is given as: its address, or its bytes as a data URL."""
    if source.get("type") == "url" and kinds == _IMAGES:
        return media.url(f"{place}.url", only(place, source, "type", "url").get("url"))
    if source.get("type") != "base64":
        raise unsupported(f"{place}.type", "a file that the provider keeps is not passed on: give its bytes as base64")
    given = only(place, source, "type", "media_type", "data")
    kind = one_of(f"{place}.media_type", given.get("media_type"), *kinds)
    return f"data:{kind};base64,{media.base64(f'{place}.data', given.get('data'))}"


def _assistant(param: str, blocks: list[Any]) -> Iterator[Message]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        place, kind = f"{param}[{number}]", _kind(f"{param}[{number}]", block)
        if kind == "text":
            texts.append(_text_block(place, block))
        elif kind == "thinking":
            thoughts.append(
                text(f"{place}.thinking", only(place, block, "type", "thinking", "signature").get("thinking"))
            )
        elif kind == "redacted_thinking":
            only(place, block, "type", "data")  # nobody can read it: it is not passed on
        elif kind == "tool_use":
            calls.append(_call(place, block))
        else:
            raise _refused(f"{place}.type", kind)
    message: Message = {"role": "assistant"}
    if texts or not calls:
        message["content"] = "".join(texts)
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    yield message


def _kind(place: str, block: Any) -> str:
    return text(f"{place}.type", mapping(place, block).get("type"))


def _refused(param: str, kind: str) -> Exception:
    if kind in _MEDIA:
        return media.unreadable(param)
    known = kind.endswith(("_tool_result", "_tool_use")) or kind in {"tool_reference", "compaction"}
    return unsupported(param, f"{kind if known else 'this kind of block'} is not supported here")


def _text_block(place: str, block: Any) -> str:
    if _kind(place, block) != "text":
        raise _refused(f"{place}.type", block["type"])
    # Citations of an earlier answer say where its text comes from: the text is what was said.
    return text(f"{place}.text", only(place, block, "type", "text", _CACHE, "citations").get("text"))


def _source_or_text(place: str, block: Any) -> str:
    kind = _kind(place, block)
    if kind == "document":
        return _document(place, block)
    return _search_result(place, block) if kind == "search_result" else _text_block(place, block)


def _document(place: str, value: Any) -> str:
    given = only(place, value, "type", "source", "title", "context", "citations", _CACHE)
    _no_citations(place, given)
    source = mapping(f"{place}.source", given.get("source"))
    kind = source.get("type")
    if kind == "text":
        read = only(f"{place}.source", source, "type", "media_type", "data")
        one_of(f"{place}.source.media_type", read.get("media_type"), "text/plain")
        content = text(f"{place}.source.data", read.get("data"))
    elif kind == "content":
        content = told(f"{place}.source.content", only(f"{place}.source", source, "type", "content").get("content"))
    else:
        raise unsupported(
            f"{place}.source.type",
            f"only documents of plain text can be analysed: source.type text or content; {media.REFUSAL}",
        )
    about = text(f"{place}.context", given.get("context", ""))
    return _element(
        "document", {"title": text(f"{place}.title", given.get("title", ""))}, f"{about}\n{content}".strip()
    )


def _search_result(place: str, value: Any) -> str:
    given = only(place, value, "type", "source", "title", "content", "citations", _CACHE)
    _no_citations(place, given)
    names = {name: text(f"{place}.{name}", given.get(name, "")) for name in ("title", "source")}
    return _element("search_result", names, told(f"{place}.content", given.get("content")))


def _no_citations(place: str, given: Mapping[str, Any]) -> None:
    wanted = only(f"{place}.citations", given.get("citations", {}), "enabled")
    if flag(f"{place}.citations.enabled", wanted.get("enabled")):
        why = "citations are not passed on: the report of an answer names the sources of its claims"
        raise unsupported(f"{place}.citations.enabled", why)


def _element(tag: str, names: Mapping[str, str], content: str) -> str:
    """Return *content* as an element that nothing in it can end."""
    lowered, unused, number = content.lower(), tag, 1
    while f"</{unused}" in lowered:
        number += 1
        unused = f"{tag}-{number}"
    cleaned = {
        name: "".join(sign for sign in value if sign not in '<>"\n')[:MOST_OF_A_NAME] for name, value in names.items()
    }
    attributes = "".join(f' {name}="{value}"' for name, value in cleaned.items() if value)
    return f"<{unused}{attributes}>\n{content}\n</{unused}>"


def _result(place: str, value: Any, *, media_pass: bool) -> Message:
    given = only(place, value, "type", "tool_use_id", "content", "is_error", _CACHE)
    content = given.get("content", "")
    if not isinstance(content, str):
        blocks = content if isinstance(content, list) else items(f"{place}.content", content, MOST_BLOCKS)
        for number, block in enumerate(blocks if media_pass else ()):
            if _kind(f"{place}.content[{number}]", block) in _MEDIA:
                raise media.unreadable(f"{place}.content[{number}].type", of_a_tool=True)
        pieces = [_source_or_text(f"{place}.content[{number}]", block) for number, block in enumerate(blocks)]
        content = _SEPARATOR.join(pieces)
    if flag(f"{place}.is_error", given.get("is_error")) and not content.startswith("Error"):
        content = f"Error: {content}"  # a chat message has no mark for it
    return {"role": "tool", "tool_call_id": text(f"{place}.tool_use_id", given.get("tool_use_id")), "content": content}


def _call(place: str, value: Any) -> dict[str, Any]:
    given = only(place, value, "type", "id", "name", "input", "caller", _CACHE)
    arguments = mapping(f"{place}.input", given.get("input"))
    raw = arguments.get(RAW_ARGUMENTS) if len(arguments) == 1 else None
    written = raw if isinstance(raw, str) else json.dumps(arguments, ensure_ascii=False)
    called = {"name": text(f"{place}.name", given.get("name")), "arguments": written}
    return {"id": text(f"{place}.id", given.get("id")), "type": "function", "function": called}
