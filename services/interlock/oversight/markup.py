"""Small pieces of HTML. Everything that somebody else wrote goes through ``said`` or ``quoted``; there is no other way in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from interlock.domain.visible import character_name, segments

FOLD = 4_000
"""Characters of one text that are shown at once; the rest is one key away, and its size is told."""


def said(text: str) -> str:
    """Return a text of somebody else's as HTML: escaped, with everything hidden in it shown and named."""
    return "".join(_hidden(part) if hidden else escape(part) for part, hidden in segments(text))


def quoted(text: str, label: str) -> str:
    """Return a text as a block of its own; a long one is folded, and says how much of it."""
    if not text:
        return f'<p class="none">{escape(label)}: empty</p>'
    head, rest = text[:FOLD], text[FOLD:]
    block = f'<div class="quote" tabindex="0" role="group" aria-label="{escape(label)}"><bdi>{said(head)}</bdi></div>'
    if not rest:
        return block
    summary = f"{len(rest):,} more characters of {len(text):,} are folded here"
    return f'{block}<details><summary>{summary}</summary><div class="quote" tabindex="0"><bdi>{said(rest)}</bdi></div></details>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values, both HTML already, as a definition list."""
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs) + "</dl>"


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already; the first of a row is its header."""
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join(
        "<tr>" + f'<th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def word(text: str, kind: str) -> str:
    """Return a word of ours, marked by *kind*, which colours it; the word itself says everything."""
    return f'<span class="word {escape(kind.lower())}">{escape(text)}</span>'


def document(title: str, body: str, *, who: str = "", csrf: str = "") -> str:
    """Return a page. Scripts and styles are files of ours: the page itself holds none."""
    signed_in = (
        f'<p class="who">Signed in as <strong>{escape(who)}</strong></p>'
        '<form method="post" action="/sign-out" id="sign-out">'
        f'<input type="hidden" name="csrf" value="{escape(csrf)}"><button>Sign out</button></form>'
        if who
        else ""
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)} – Interlock</title>'
        '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/review.css"><script src="/static/review.js" defer></script></head>'
        f'<body{attributes({"data-reviewer": who, "data-csrf": csrf})}><a class="skip" href="#main">Skip to the content</a>'
        f'<header><a class="home" href="/">Interlock oversight</a>{signed_in}</header>'
        f'<main id="main" tabindex="-1"><h1>{escape(title)}</h1>'
        f'<p id="status" role="status" aria-live="polite"></p>{body}</main></body></html>'
    )


def attributes(values: Mapping[str, str]) -> str:
    """Return attributes with a leading space each; those without a value are left out."""
    return "".join(f' {name}="{escape(value)}"' for name, value in values.items() if value)


def _hidden(code: str) -> str:
    return f'<mark class="hidden" title="{escape(character_name(code))}">{code}</mark>'
