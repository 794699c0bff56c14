"""Emergency actions that a sidecar records by itself while their kernel cannot be reached (T8): what is signed, and how a spool is read.

A spool is a text of lines, each ``<mac> <JSON>``; a mac covers the mac of the line before it, so that no line can be changed, left out or
put elsewhere. A head beside it names the last line, so that the end cannot be cut off. An entry has a signature of its own too, which
becomes a part of the sealed record: whatever became of the spool, an entry that this deployment signed can be believed by itself.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from interlock.domain.errors import Refused
from interlock.domain.kernel.definition import kernel_id_of

EMERGENCY_TAG, LINE_TAG, HEAD_TAG, SEEN_TAG = (
    f"interlock-emergency-{what}-v1" for what in ("action", "line", "head", "definition")
)
SEPARATOR = "\u241f"
KeyNamed = Callable[[str, str], bytes | None]
"""Name of a key and the id that it is derived for → the key; ``None`` for one that is not at hand."""

_SPOOL, _SIGNATURE = re.compile(r"[0-9a-f]{32}", re.ASCII), re.compile(r"[0-9a-f]{64}", re.ASCII)
_SIGNED_BY = re.compile(r"binding|master-[1-9][0-9]{0,9}", re.ASCII)
LARGEST_NUMBER = 2**53 - 1


@dataclass(frozen=True)
class EmergencyEntry:
    """An emergency action of a kernel, as it was asked for and recorded. *at_ms* is by the recording sidecar's clock."""

    spool: str
    number: int
    kernel_id: str
    scope: str
    root: str
    kernel: str
    action: str
    stop: bool
    child: str
    key: str
    at_ms: int
    signed_by: str
    signature: str = ""

    @property
    def signed_fields(self) -> tuple[str, ...]:
        """What the signature covers. The id of the kernel is made from scope, root and name."""
        return (
            self.kernel_id, self.action, "1" if self.stop else "0", self.child, self.key,
            self.spool, str(self.number), str(self.at_ms), self.signed_by,
        )  # fmt: skip

    def signed(self, key: bytes) -> EmergencyEntry:
        """Return the entry with its signature."""
        return replace(self, signature=_mac(key, EMERGENCY_TAG, *self.signed_fields))

    def genuine(self, key_named: KeyNamed) -> bool:
        """Tell whether this deployment signed it."""
        key = key_named(self.signed_by, self.kernel_id)
        return key is not None and _same(self.signature, _mac(key, EMERGENCY_TAG, *self.signed_fields))

    def believed(self, key_named: KeyNamed) -> bool:
        """Tell whether this deployment signed it, for the kernel that it names."""
        try:
            return self.kernel_id == kernel_id_of(self.scope, self.root, self.kernel) and self.genuine(key_named)
        except Refused:
            return False

    def same_ask(self, other: EmergencyEntry) -> bool:
        """Tell whether both ask for the same, whatever their key."""
        return (self.action, self.stop, self.child) == (other.action, other.stop, other.child)


def is_evidence(spool: str, number: int, at_ms: int, signed_by: str, signature: str) -> bool:
    """Tell whether this can be the evidence of a recorded action; whether it is genuine only a holder of the key can tell."""
    return bool(
        _SPOOL.fullmatch(spool) and _SIGNATURE.fullmatch(signature) and _SIGNED_BY.fullmatch(signed_by)
        and 0 < number <= LARGEST_NUMBER and 0 <= at_ms <= LARGEST_NUMBER
    )  # fmt: skip


def entry_in(kernel_id: str, data: Mapping[str, Any]) -> EmergencyEntry | None:
    """Return the entry that the data of a sealed KERNEL_EMERGENCY record tells of; ``None`` for an action that was not recorded before."""
    told = data.get("recorded")
    if not isinstance(told, Mapping):
        return None
    return EmergencyEntry(
        spool=str(told["spool"]), number=int(told["number"]), kernel_id=kernel_id, scope="", root="", kernel="",
        action=str(data["action"]), stop=told["stop"] == "1", child=str(told["child"]), key=str(data["key"]),
        at_ms=int(told["at_ms"]), signed_by=str(told["signed_by"]), signature=str(told["signature"]),
    )  # fmt: skip


@dataclass(frozen=True)
class SpoolHead:
    """What a spool ended with when it was last written."""

    generation: int
    number: int
    mac: str

    def text(self, signed_by: str, key_named: KeyNamed) -> str:
        """Return the content of the file of heads."""
        return _signed_text(HEAD_TAG, "", asdict(self), signed_by, key_named)

    @classmethod
    def of(cls, text: str, key_named: KeyNamed) -> SpoolHead | None:
        """Read it; ``None`` where this deployment did not write it."""
        told = _read_text(HEAD_TAG, "", text, key_named)
        return None if told is None else cls(**told)


@dataclass
class Spool:
    """A spool as it was read: what is open in it, and what cannot be believed of it."""

    spool: str = ""
    generation: int = 0
    signed_by: str = ""
    """Name of the key of its lines."""
    number: int = 0
    """Number of its last line that is believed."""
    mac: str = ""
    size: int = 0
    """Bytes up to that line."""
    latest: int = 0
    """Highest number of an entry."""
    open: dict[int, EmergencyEntry] = field(default_factory=dict)
    """Number → entry that is not known to be sealed, in their order."""
    stuck: dict[int, str] = field(default_factory=dict)
    """Number → reason why it cannot be sealed: it needs a person."""
    faults: list[str] = field(default_factory=list)

    def of_kernel(self, kernel_id: str) -> list[EmergencyEntry]:
        """Return what is open of a kernel, in order."""
        return [one for one in self.open.values() if one.kernel_id == kernel_id]

    def due(self, kernel_id: str) -> list[EmergencyEntry]:
        """Return what of it can be sealed, in order."""
        return [one for one in self.of_kernel(kernel_id) if one.number not in self.stuck]

    def kernels_due(self) -> list[str]:
        """Return the kernels of which something can be sealed."""
        return list(dict.fromkeys(one.kernel_id for one in self.open.values() if one.number not in self.stuck))

    def line(self, body: Mapping[str, Any], key: bytes) -> str:
        """Return *body* as the line that comes next."""
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return f"{_mac(key, LINE_TAG, self.mac, str(self.number + 1), text)} {text}\n"

    def take(self, line: str) -> EmergencyEntry | None:
        """Take a line that was believed, or was just written; return the entry in it."""
        self.mac, _, text = line.rstrip("\n").partition(" ")
        self.number, self.size = self.number + 1, self.size + len(line.encode())
        body = json.loads(text)
        what, of = body["what"], int(body.get("of", 0))
        if what == "begun":
            self.spool, self.generation, self.signed_by = body["spool"], int(body["generation"]), body["signed_by"]
            self.number, self.latest = int(body["number"]), int(body["latest"])
        elif what == "emergency":
            entry = _entry(body["entry"])
            self.open[entry.number], self.latest = entry, max(self.latest, entry.number)
            return entry
        elif what == "stuck":
            self.stuck[of] = body["reason"]
        else:
            self.stuck.pop(of, None)
            if what != "again":
                self.open.pop(of, None)
        return None


def emergency_line(entry: EmergencyEntry) -> dict[str, Any]:
    """Return the body of the line of an entry."""
    return {"what": "emergency", "entry": asdict(entry)}


def begun_line(spool: Spool, *, signed_by: str) -> dict[str, Any]:
    """Return the body of the first line of the next generation of a spool; it goes on where this one ended."""
    return {
        "what": "begun", "spool": spool.spool, "generation": spool.generation + 1, "signed_by": signed_by,
        "number": spool.number + 1, "latest": spool.latest,
    }  # fmt: skip


def read_spool(text: str | None, head_text: str | None, key_named: KeyNamed) -> Spool:
    """Return what a spool holds, from the texts of the spool and of its head; ``None`` for a file that is not there.

    A line that was being written when the machine stopped, behind the last one that the head names, was answered to nobody and is left
    out. Everything else that does not verify is a fault; entries behind it are believed by their own signature alone.
    """
    found, marks = Spool(), dict[int, str]()
    head = None if head_text is None else SpoolHead.of(head_text, key_named)
    if head is None and (text is not None or head_text is not None):
        found.faults.append("the head of the spool is gone, or was changed")
    lines = (text or "").splitlines(keepends=True)
    for index, line in enumerate(lines):
        if not _follows(found, line, key_named, first=index == 0):
            torn = index == len(lines) - 1 and not line.endswith("\n")
            if not torn or head is None or found.number < head.number:
                _broken(found, lines[index:], key_named)
            break
        entry = found.take(line)
        marks[found.number] = found.mac
        if entry and not entry.believed(key_named):
            del found.open[entry.number]
            found.faults.append(f"line {found.number}: the action was not signed here")
    if head is not None and not found.faults:
        found.faults.extend(_compared(found, head, marks))
    return found


def _follows(spool: Spool, line: str, key_named: KeyNamed, *, first: bool) -> bool:
    """Tell whether this deployment wrote *line* right behind what was read so far."""
    mac, _, text = line.rstrip("\n").partition(" ")
    if not line.endswith("\n"):
        return False
    try:
        body = json.loads(text)
        begins = body["what"] == "begun"
        signed_by = str(body["signed_by"]) if begins else spool.signed_by
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    key = key_named(signed_by, "")
    # The first line stands at the number that it names, behind nothing.
    return (
        begins == first and key is not None and _same(mac, _mac(key, LINE_TAG, spool.mac, str(spool.number + 1), text))
    )


def _broken(found: Spool, rest: Sequence[str], key_named: KeyNamed) -> None:
    """Note what does not follow, and take from it what can be believed by itself."""
    found.faults.append(f"line {found.number + 1} does not follow the one before it")
    for line in rest:
        try:
            entry = _entry(json.loads(line.partition(" ")[2])["entry"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if entry.believed(key_named):
            found.open[entry.number], found.latest = entry, max(found.latest, entry.number)
    found.open = dict(sorted(found.open.items()))


def _compared(found: Spool, head: SpoolHead, marks: Mapping[int, str]) -> Iterator[str]:
    """Yield what the head says against a spool whose lines verify."""
    if not found.number:
        if head.number:
            yield "the spool is gone"
    elif found.generation not in {head.generation, head.generation + 1}:
        yield "the spool is an older or another one"
    elif found.generation == head.generation and not (head.number in marks and _same(marks[head.number], head.mac)):
        yield "the end of the spool was cut off, or it is another one"


@dataclass(frozen=True)
class KernelSeen:
    """What a sidecar knows of a kernel from what was sealed: enough to take an emergency action for it while it cannot be asked."""

    kernel_id: str
    scope: str
    root: str
    kernel: str
    emergencies: tuple[str, ...] = ()
    """Ids of its emergency actions, sorted."""
    children: Mapping[str, str] = field(default_factory=dict)
    """Child → the child above it; empty: the kernel itself."""
    tokens: tuple[str, ...] = ()
    """Digests of the session tokens that were verified for it, the latest last."""

    def path(self, child: str) -> list[str]:
        """Return a child and all above it that are known."""
        found: list[str] = []
        while child and child not in found:
            found.append(child)
            child = self.children.get(child, "")
        return found

    def text(self, signed_by: str, key_named: KeyNamed) -> str:
        """Return the content of its file."""
        return _signed_text(SEEN_TAG, self.kernel_id, asdict(self), signed_by, key_named)

    @classmethod
    def of(cls, kernel_id: str, text: str, key_named: KeyNamed) -> KernelSeen | None:
        """Read it; ``None`` where this deployment did not write it for this kernel."""
        told = _read_text(SEEN_TAG, kernel_id, text, key_named)
        if told is None or told["kernel_id"] != kernel_id:
            return None
        return cls(**{**told, "emergencies": tuple(told["emergencies"]), "tokens": tuple(told["tokens"])})


def stands(stops: Sequence[EmergencyEntry], child: str, seen: KernelSeen | None) -> bool:
    """Tell whether one of the recorded *stops* of a kernel stops what is done for *child*; empty: for the kernel itself.

    A child that is not known may be below the one that was stopped.
    """
    if any(not one.child for one in stops):
        return True
    if not child or not stops:
        return False
    if seen is None or child not in seen.children:
        return True
    return not {one.child for one in stops}.isdisjoint(seen.path(child))


_NAMES = {one.name: one.type for one in fields(EmergencyEntry)}


def _entry(told: Mapping[str, Any]) -> EmergencyEntry:
    """Read an entry. Raises ``ValueError`` for anything else."""
    kinds = {"int": int, "str": str, "bool": bool}
    if told.keys() != _NAMES.keys() or any(type(told[name]) is not kinds[str(kind)] for name, kind in _NAMES.items()):
        raise ValueError("this is no entry")
    return EmergencyEntry(**told)


def _signed_text(tag: str, subject: str, body: Mapping[str, Any], signed_by: str, key_named: KeyNamed) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    key = key_named(signed_by, subject)
    assert key is not None, "the key that signs is at hand"
    return f"{_mac(key, tag, text)} {signed_by} {text}\n"


def _read_text(tag: str, subject: str, text: str, key_named: KeyNamed) -> dict[str, Any] | None:
    mac, signed_by, body = [*text.rstrip("\n").split(" ", 2), "", "", ""][:3]
    key = key_named(signed_by, subject)
    if key is None or not _same(mac, _mac(key, tag, body)):
        return None
    told: dict[str, Any] = json.loads(body)
    return told


def _mac(key: bytes, *parts: str) -> str:
    return hmac.digest(key, SEPARATOR.join(parts).encode("utf-8", "surrogatepass"), "sha256").hex()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
