"""Predicates: which verbs, nouns and adjectives say the same of their slots, the opposite, or the same the other way round.

Curated lists: what they do not name is compared by its own word only, and never called an opposite.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType

from interlock.dpe.text.wordlists import lines, word_set
from interlock.dpe.values.frames import DIRECTIONS

CAUSE, SAY, BE = "cause", "say", "be"


def _groups() -> dict[str, str]:
    """Read the groups of one meaning: each word with the first word of its group."""
    found: dict[str, str] = {}
    for line in lines("predicates.txt"):
        kind, _, words = line.partition("|")
        if kind == "same":
            first, *_ = group = words.split()
            found.update((word, first) for word in group)
    return found


def _pairs(kind: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines("predicates.txt"):
        named, _, words = line.partition("|")
        if named == kind:
            for pair in words.split():
                one, _, other = pair.partition("=")
                found[one] = other
    return found


def _set(kind: str) -> frozenset[str]:
    return word_set(
        " ".join(words for line in lines("predicates.txt") for k, _, words in [line.partition("|")] if k == kind)
    )


_LONG = 4
_PARTICLES = frozenset({frozenset({"on", "off"})})
_NO_OPPOSITE = word_set(
    "discover disclose dispose display dismiss disguise dispatch discount discharge undertake undergo understand until"
)
_OF_ADJECTIVES = ("able", "ible", "al", "ent", "ant", "ate", "ect", "ular", "ive", "ete", "ite")
_SAME = _groups()
_VERB_OF = _pairs("noun")
_AGAINST = _pairs("opposite")
SYMMETRIC = _set("symmetric")
LIGHT = _set("light")
SAME_BOTH_WAYS = _set("mutual")
REPORTING = _set("say")
REFUSING = _set("refusing")
HYPOTHETICAL = _set("hypothetical")
PHRASAL = {
    ("take", "over"): "buy", ("hand", "over"): "give", ("draw", "up"): "plan", ("turn", "down"): "reject", ("call", "off"): "cancel",
    ("put", "off"): "postpone", ("carry", "out"): "run", ("shut", "down"): "close", ("close", "down"): "close", ("set", "up"): "found",
    ("put", "in"): "install", ("rule", "out"): "exclude", ("give", "up"): "abandon", ("throw", "out"): "reject", ("throw", "away"): "discard",
    ("speed", "up"): "accelerate", ("slow", "down"): "slow", ("lay", "off"): "dismiss", ("take", "on"): "hire", ("pay", "back"): "repay",
    ("back", "up"): "save", ("point", "out"): "say", ("sign", "off"): "approve", ("win", "over"): "persuade", ("let", "down"): "disappoint",
}  # fmt: skip
"""Verbs with a particle that say what another verb says."""
_CONVERSE = MappingProxyType(
    {
        "sell": ("buy", (("agent", "from"), ("to", "agent"))),
        "import": ("export", (("agent", "to"), ("from", "agent"))),
        "borrow": ("lend", (("agent", "to"), ("from", "agent"))),
        "lease from": ("lease", (("agent", "to"), ("from", "agent"))),
        "rent from": ("rent", (("agent", "to"), ("from", "agent"))),
        "charter from": ("charter", (("agent", "to"), ("from", "agent"))),
        "license from": ("license", (("agent", "to"), ("from", "agent"))),
        "receive": ("give", (("agent", "to"), ("from", "agent"))),
        "belong to": ("own", (("agent", "object"), ("to", "agent"))),
        "work for": ("employ", (("agent", "object"), ("for", "agent"))),
        "report to": ("supervise", (("agent", "object"), ("to", "agent"))),
        "lose to": ("beat", (("agent", "object"), ("to", "agent"))),
        "result from": (CAUSE, (("agent", "object"), ("from", "agent"))),
        "stem from": (CAUSE, (("agent", "object"), ("from", "agent"))),
        "attribute to": (CAUSE, (("to", "agent"), ("agent", "said-by"))),
        "blame on": (CAUSE, (("on", "agent"), ("agent", "said-by"))),
        "lead to": (CAUSE, (("to", "object"),)),
        "result in": (CAUSE, (("in", "object"),)),
        "follow": ("precede", (("agent", "object"), ("object", "agent"))),
        "succeed": ("precede", (("agent", "object"), ("object", "agent"))),
        "leave from": ("leave", (("from", "object"),)),
        "depart from": ("leave", (("from", "object"),)),
        "due to": (CAUSE, (("to", "agent"),)),
        "ask for": ("request", (("for", "object"),)),
        "call for": ("demand", (("for", "object"),)),
        "interfere with": ("disturb", (("with", "object"),)),
        "object to": ("oppose", (("to", "object"),)),
        "wait for": ("await", (("for", "object"),)),
        "decide on": ("decide", (("on", "object"),)),
        "rule on": ("decide", (("on", "object"),)),
        "include in": ("include", (("in", "agent"),)),
        "charge to": ("pay", (("agent", ""), ("to", "agent"))),
        "charge": ("pay", (("agent", "to"), ("object", "agent"))),
    }
)


@cache
def canonical(word: str) -> str:
    """Return the word that stands for all predicates of one meaning."""
    return _SAME.get(word, word)


def verb_of(noun: str) -> str:
    """Return the verb that a noun nominalises, or the empty string."""
    return canonical(_VERB_OF[noun]) if noun in _VERB_OF else ""


def converse(word: str, slots: frozenset[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the predicate that a converse one is read as, and how its slots are renamed: A sells to B, B buys from A."""
    for slot in ("to", "for", "from", "in", "on", "with"):
        if slot in slots and f"{word} {slot}" in _CONVERSE:
            return _CONVERSE[f"{word} {slot}"]
    return _CONVERSE.get(word, (word, ()))


@cache
def opposite(one: str, other: str) -> bool:
    """Whether two predicates say the opposite of their slots."""
    if _AGAINST.get(one) == other or _AGAINST.get(other) == one:
        return True
    first, second = DIRECTIONS.get(one), DIRECTIONS.get(other)
    if first and second and first[0] == second[0]:
        return first[1] != second[1]
    (verb, _, particle), (other_verb, _, other_particle) = one.partition(" "), other.partition(" ")
    if particle and verb == other_verb:
        return frozenset({particle, other_particle}) in _PARTICLES
    return _denies(one, other) or _denies(other, one)


def _denies(one: str, other: str) -> bool:
    """Whether a word is another with a prefix that denies it: *install* and *uninstall*, but not *cover* and *discover*."""
    prefix = one.removesuffix(other)
    if not one.endswith(other) or len(other) < _LONG or one in _NO_OPPOSITE:
        return False
    return prefix in {"un", "dis", "non"} or (prefix in {"in", "im", "il", "ir"} and other.endswith(_OF_ADJECTIVES))


@cache
def alike(one: str, other: str) -> bool:
    """Whether two predicates say the same of their slots."""
    if one == other:
        return True
    first, second = DIRECTIONS.get(one), DIRECTIONS.get(other)
    return first is not None and first == second
