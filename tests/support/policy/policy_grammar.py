"""A second reader of safety policies: the ABNF of SPEC-006 §2.1 given to lark, as an oracle for the product's own.

It shares no code with the product. What the ABNF cannot say is checked afterwards: the range of thresholds, duplicates,
'none' alone, the port of a URI (reliability.md §7, rows 18 and 19).
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from lark import Lark, Token, Tree
from lark.exceptions import LarkError

_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMS = r"!$&'()*+="  # without "," and ";"
_PCT = r"%[0-9A-Fa-f][0-9A-Fa-f]"
_PCHAR = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:@]|{_PCT})"
_H16, _OCTET = r"[0-9A-Fa-f]{1,4}", r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LS32 = rf"(?:{_H16}:{_H16}|{_OCTET}(?:\.{_OCTET}){{3}})"
# The nine alternatives of IPv6address, RFC 3986 §3.2.2
_IPV6 = "|".join([
    rf"(?:{_H16}:){{6}}{_LS32}",
    rf"::(?:{_H16}:){{5}}{_LS32}",
    rf"(?:{_H16})?::(?:{_H16}:){{4}}{_LS32}",
    rf"(?:(?:{_H16}:){{0,1}}{_H16})?::(?:{_H16}:){{3}}{_LS32}",
    rf"(?:(?:{_H16}:){{0,2}}{_H16})?::(?:{_H16}:){{2}}{_LS32}",
    rf"(?:(?:{_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}",
    rf"(?:(?:{_H16}:){{0,4}}{_H16})?::{_LS32}",
    rf"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
    rf"(?:(?:{_H16}:){{0,6}}{_H16})?::",
])  # fmt: skip
_HOST = rf"(?:\[(?:{_IPV6})\]|[A-Za-z0-9_][A-Za-z0-9._\-]*)"
_URI = (
    rf"[Hh][Tt][Tt][Pp][Ss]?://{_HOST}(?::[0-9]{{1,5}})?(?:/{_PCHAR}*)*"
    rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:\#(?:{_PCHAR}|[/?])*)?"
)

GRAMMAR = rf"""
policy: directive (";" OWS? directive)*
?directive: source | level | threshold | money | count | quality | flag | repetition | upgrade | oversight | uri | group | profile

source: /default-src/i (SP SOURCE)+
SOURCE: /context|parametric|ckf|cross-session|'none'/i

level: /(halt-on|warn-on)/i SP LEVEL
LEVEL: /CRITICAL|HIGH|MEDIUM/i

threshold: /require-(grounding|entailment|flow|completeness)|max-cannot-tell/i SP THRESHOLD
THRESHOLD: /[0-9]+\.[0-9]{{1,2}}/

money: /max-spend-usd/i SP MONEY
MONEY: /[0-9]{{1,8}}(\.[0-9]{{1,6}})?/

count: /max-spend-tokens/i SP COUNT
COUNT: /[0-9]{{1,12}}/

quality: /require-quality/i (SP TIER)+
TIER: /[SABCD]/i

flag: /block-(ungrounded|parametric|pii|fabrication|repetition)|halt-on-action/i

repetition: /max-repetition/i SP REPETITION
REPETITION: /NONE|MINOR|SIGNIFICANT/i

upgrade: /upgrade-on-risk/i SP STRATEGY
STRATEGY: /reflexive|hierarchical|batch/i

oversight: /(require-)?oversight/i SP MODE
MODE: /auto|human-review|halt|log-only/i

uri: /report-uri/i SP URI
URI: /{_URI.replace("/", chr(92) + "/")}/

group: /report-to/i SP GROUP
GROUP: /[A-Za-z0-9\-_]+/

profile: /profile=/i PROFILE
PROFILE: /medical|financial|developer|public-facing/i

SP: " "
OWS: /[ \t]+/
"""

_PARSER = Lark(GRAMMAR, parser="lalr", start="policy")
_OVERSIGHT = ["log-only", "auto", "human-review", "halt"]

Meaning = dict[str, object]


def read(text: str) -> Meaning | None:
    """Return what *text* says by directive; ``None`` when it is no policy."""
    if len(text) > 8192:
        return None
    try:
        tree = _PARSER.parse(text)
    except LarkError:
        return None
    directives = [_directive(child) for child in tree.children if isinstance(child, Tree)]
    if any(value is None for _, value in directives) or _repeated(directives):
        return None
    meaning: Meaning = {}
    for name, value in directives:
        if name in {"report-uri", "report-to"}:
            value = meaning.get(name, frozenset()) | {value}
        elif name in {"oversight", "require-oversight"}:
            name, value = "oversight", max(meaning.get("oversight", value), value, key=_OVERSIGHT.index)
        meaning[name] = value
    return meaning


def _repeated(directives: list[tuple[str, object]]) -> bool:
    keys = [(name, value) if name in {"report-uri", "report-to"} else name for name, value in directives]
    return max(Counter(keys).values()) > 1


def _directive(tree: Tree[Token]) -> tuple[str, object]:
    """Return name and value; the value is ``None`` when the grammar allows it and its meaning does not."""
    tokens = [token for token in tree.children if token.type != "SP"]
    name, values = str(tokens[0]).lower(), [str(token) for token in tokens[1:]]
    match tree.data:
        case "source":
            sources = frozenset(value.lower() for value in values)
            if "'none'" in sources:
                return name, frozenset() if len(sources) == 1 else None
            return name, sources
        case "quality":
            return name, frozenset(value.upper() for value in values)
        case "threshold":
            return name, Decimal(values[0]) if Decimal(values[0]) <= 1 else None
        case "money" | "count":
            return name, Decimal(values[0])
        case "level" | "repetition":
            return name, values[0].upper()
        case "flag":
            return name, True
        case "uri":
            return name, values[0] if _has_usable_port(values[0]) else None
        case "group":
            return name, values[0]
        case _:
            return name, values[0].lower()


def _has_usable_port(uri: str) -> bool:
    authority = uri.partition("://")[2].partition("#")[0].partition("?")[0].partition("/")[0]
    port = authority.rpartition("]")[2].partition(":")[2]
    return not port or 1 <= int(port) <= 65535
