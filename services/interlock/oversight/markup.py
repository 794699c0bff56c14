"""The templates of the reviewers' pages, and the only way for a text of someone else into one of them.

Jinja2 escapes every value. A text that someone else wrote goes through ``said`` or ``quoted`` first: they show and name every
hidden character in it (reliability.md A-31). No template and no module here marks a string as safe by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from interlock.oversight.visible import character_name, segments

FOLD = 4_000
"""Characters of one text that are shown at once; the rest is folded, and its size is shown."""

ENVIRONMENT = Environment(
    loader=PackageLoader("interlock.oversight", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Part(NamedTuple):
    """A part of a text: characters as they are, or the code point of a hidden one with its Unicode name."""

    text: str
    name: str


class FoldedText(NamedTuple):
    """The end of a long text: its characters, and how many there are."""

    said: Markup
    size: int


def render(template: str, **values: Any) -> str:
    """Return a page. ``jinja2.UndefinedError`` if a value that the template names is missing."""
    return ENVIRONMENT.get_template(template).render(values)


def said(text: str) -> Markup:
    """Return a text of someone else as HTML: escaped, with every hidden character in it shown and named."""
    return _piece("said", [Part(part, character_name(part) if hidden else "") for part, hidden in segments(text)])


def quoted(text: str, label: str) -> Markup:
    """Return a text as a block of its own; a long one is folded after ``FOLD`` characters."""
    rest = text[FOLD:]
    return _piece("quoted", label, said(text[:FOLD]), FoldedText(said(rest), len(rest)), len(text))


def _piece(macro: str, *values: Any) -> Markup:
    piece: Markup = getattr(ENVIRONMENT.get_template("pieces.html").module, macro)(*values)
    return piece
