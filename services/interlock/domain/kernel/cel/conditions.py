"""The conditions in CEL of one kernel, as it keeps them: trees, and what they speak of (field ``cel`` of its hash)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused, unavailable
from interlock.domain.kernel.cel.evaluation import Matches, Tree, verdict_of
from interlock.domain.kernel.cel.names import Seen, bindings
from interlock.domain.kernel.expression import Declared


@dataclass(frozen=True)
class CelLanguage:
    """What reads conditions, and what matches patterns. It is a library's, so that it is handed in here."""

    read: Callable[[str, Declared], tuple[Tree, Sequence[Seen]]]
    """The tree of a text, and what it speaks of. Refused where it cannot be read, or speaks of what is not declared."""
    matches: Matches


def unavailable_here() -> Refused:
    """Return the refusal of what needs the library where it is not installed."""
    return unavailable(
        "KERNEL_CEL_UNAVAILABLE",
        "conditions in CEL need the library that reads them: pip install 'interlock[cel]'",
        retry_after_ms=0,
    )


def kept(
    conditions: Iterable[tuple[str, str, str]], names: Declared, language: CelLanguage, *, before: str = ""
) -> str:
    """Return what a kernel keeps of conditions (name, enforcement, text), after those of *before*; empty where there are none.

    What is kept, and sealed, is the tree: another version of the library does not change what a kernel means.
    """
    known: Mapping[str, Any] = json.loads(before or '{"names": [], "programs": []}')
    seen, programs = [tuple(one) for one in known["names"]], [*known["programs"]]
    for name, enforcement, text in conditions:
        tree, spoken = language.read(text, names)
        programs.append([name, enforcement, tree])
        seen += [one for one in map(tuple, spoken) if one not in seen]
    told = {"names": [list(one) for one in seen], "programs": programs}
    return json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if programs else ""


def without(text: str, names: Iterable[str]) -> str:
    """Return what is kept, less the conditions of these names; empty where none is left."""
    gone, told = set(names), json.loads(text)
    programs = [one for one in told["programs"] if one[0] not in gone]
    return json.dumps(told | {"programs": programs}) if programs else ""


def verdicts(text: str, shown: Sequence[str], matches: Matches) -> str:
    """Return what each condition says of the values of a view, one letter each (``evaluation``)."""
    told = json.loads(text)
    held = bindings(told["names"], shown)
    return "".join(verdict_of(tree, held, matches) for _, _, tree in told["programs"])
