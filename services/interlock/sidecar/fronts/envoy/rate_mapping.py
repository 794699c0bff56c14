"""Which action of a kernel each descriptor of Envoy's is, and what it costs, read from a YAML file: pure but for the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from interlock.domain.budget import micros
from interlock.domain.errors import Refused, exhausted, unavailable
from interlock.runtime.settings.rereading import Reread
from interlock.runtime.settings.strict_yaml import parse_yaml

INVALID = "RATE_LIMITS_INVALID"
ANY = "*"
MOST_HITS = 1_000_000

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,100}$")]
Entries = Sequence[tuple[str, str]]

_FROM_DESCRIPTOR = re.compile(r"\{([^{}]+)\}")
_CHILD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RateRule(_Strict):
    """What one kind of descriptor is in a kernel."""

    descriptor: Annotated[Mapping[str, str], Field(min_length=1)]
    """Every entry that it has; ``*``: any value."""
    kernel: Name
    child: str = ""
    """The part of the kernel that it is charged to, or ``{key}``: the value of that entry."""
    action: Name
    """Id of a registered action. It is executed for each request, or permitted where each hit has a cost."""
    resource: Name | None = None
    """The budget that hits are charged to, out of what the action reserves of it; absent: one hit, at the action's own costs."""
    cost: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = None
    """What each hit costs."""

    @model_validator(mode="after")
    def _whole(self) -> RateRule:
        if (self.cost is None) != (self.resource is None):
            raise ValueError("resource and cost go together")
        if self.cost is not None and self.cost != round(self.cost, 6):
            raise ValueError("cost has at most six places")
        key = _FROM_DESCRIPTOR.fullmatch(self.child)
        if self.child and not (key and key[1] in self.descriptor) and not _CHILD.fullmatch(self.child):
            raise ValueError("child is a name, or {key} of an entry of the descriptor")
        return self

    def fits(self, entries: Mapping[str, str]) -> bool:
        """Tell whether a descriptor is of this kind."""
        wanted = self.descriptor
        return wanted.keys() == entries.keys() and all(one in (ANY, entries[key]) for key, one in wanted.items())


class RateLimits(_Strict):
    """The whole file."""

    domain: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """What the filter of Envoy is configured with."""
    caller: Name
    """Whose kernels they are: the name of a key in api_keys_file, or the scope that the access line shows for another."""
    rules: Annotated[tuple[RateRule, ...], Field(min_length=1, max_length=1000)]


@dataclass(frozen=True)
class KernelCharge:
    """What a descriptor asks of a kernel."""

    kernel: str
    child: str
    action: str
    resource: str
    """Empty: the action's own costs."""
    amount_micros: int


def charge_of(limits: RateLimits, domain: str, entries: Entries, hits: int) -> KernelCharge:
    """Return what a descriptor asks. Refused with RATE_LIMIT_UNMAPPED or RATE_LIMIT_HITS."""
    given = dict(entries)
    rule = next((one for one in limits.rules if one.fits(given)), None)
    if domain != limits.domain or rule is None or len(given) < len(entries):
        raise exhausted("RATE_LIMIT_UNMAPPED", "nobody has said what this request is counted as, so it goes nowhere")
    if not 1 <= hits <= (MOST_HITS if rule.resource else 1):
        raise exhausted("RATE_LIMIT_HITS", f"without a cost a request is one hit, with one it is 1 to {MOST_HITS}")
    amount = micros(rule.cost) * hits if rule.cost is not None else 0
    return KernelCharge(rule.kernel, _child(rule, given), rule.action, rule.resource or "", amount)


def load_limits(path: Path) -> Reread[RateLimits]:
    """Return the limits of a file, read again when it changes. Refused with RATE_LIMITS_INVALID, naming the place."""

    def read(contents: Sequence[bytes]) -> RateLimits:
        try:
            return RateLimits.model_validate(parse_yaml(contents[0], path))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise unavailable(INVALID, f"{path}: {place}: {first['msg']}", retry_after_ms=0) from None

    try:
        return Reread([path], read, setting="rate_limits_file")
    except Refused as refused:
        raise unavailable(INVALID, refused.message, retry_after_ms=0) from None


def _child(rule: RateRule, entries: Mapping[str, str]) -> str:
    key = _FROM_DESCRIPTOR.fullmatch(rule.child)
    child = entries[key[1]] if key else rule.child
    if child and not _CHILD.fullmatch(child):
        raise exhausted("RATE_LIMIT_UNMAPPED", "the value that names the child is no name")
    if key and not child:
        raise exhausted("RATE_LIMIT_UNMAPPED", "the value that names the child is empty")
    return child
