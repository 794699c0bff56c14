"""Models are what their manifests say, or nothing starts (DPE-17)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.models import BUNDLED, check, check_code, contents, manifest, verify
from tests.support.dpe import own_classifier, own_model

LABELS = ("entailment", "neutral", "contradiction")


@pytest.fixture
def slot(tmp_path: Path) -> Path:
    """A slot of one's own, complete and right."""
    return own_model(tmp_path / "own", [3.0, 0.0, 0.0], LABELS)


def rewrite(folder: Path, **fields: object) -> None:
    path = folder / "manifest.json"
    raw = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({key: value for key, value in raw.items() if value is not None}))


@pytest.mark.req("DPE-17")
@pytest.mark.parametrize("name", ["nli", "embed", "ner", "parser"])
def test_the_bundled_models_are_the_pinned_ones(name):
    """Every file of every slot hashes to its manifest."""
    found = manifest(name)
    check(found)

    assert found.hash.startswith("sha256:")
    assert found.licence


@pytest.mark.req("DPE-17")
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_changed_file_is_refused(slot, name):
    """One byte more, and the slot is not used."""
    with (slot / name).open("ab") as file:
        file.write(b" ")

    with pytest.raises(Refused) as refused:
        check(manifest("nli", slot))
    assert (refused.value.kind, refused.value.reason) == (Kind.UNAVAILABLE, "MODEL_HASH_MISMATCH")


@pytest.mark.req("DPE-17")
def test_what_was_checked_is_what_is_loaded(slot):
    """The bytes that a session is made of are the bytes that were hashed."""
    found = manifest("nli", slot)
    assert contents(found, "model.onnx") == (slot / "model.onnx").read_bytes()

    (slot / "model.onnx").write_bytes(b"other")
    with pytest.raises(Refused, match="MODEL_HASH_MISMATCH"):
        contents(found, "model.onnx")


@pytest.mark.req("DPE-17")
@pytest.mark.parametrize("name", ["manifest.json", "model.onnx"])
def test_a_missing_file_is_refused(slot, name):
    """A slot with a hole is named."""
    (slot / name).unlink()

    with pytest.raises(Refused, match="MODEL_MISSING"):
        check(manifest("nli", slot))


@pytest.mark.req("DPE-17")
@pytest.mark.parametrize(
    "fields",
    [
        {"slot": "embed"},
        {"labels": ["yes", "no", "maybe"]},
        {"labels": ["entailment", "neutral"]},
        {"max_length": 8},
        {"max_length": "long"},
        {"model": "other.onnx"},
        {"files": {}},
        {"files": {"../model.onnx": {"sha256": "0"}}},
        {"files": {"/etc/hosts": {"sha256": "0"}}},
        {"files": ["model.onnx"]},
        {"name": None},
    ],
)
def test_a_manifest_that_says_nonsense_is_refused(slot, fields):
    """Labels, lengths and names are checked before anything is loaded, and no path leaves the folder."""
    rewrite(slot, **fields)

    with pytest.raises(Refused, match="MODEL_MANIFEST_INVALID"):
        manifest("nli", slot)


@pytest.mark.req("DPE-17")
@pytest.mark.parametrize(
    "labels",
    [["O"], ["B-PERSON", "I-PERSON"], ["O", "B-PERSON", "B-PERSON"], ["O", "B-GPE", "I-GPE"], ["O", "PERSON"], []],
)
def test_a_classifier_of_other_labels_is_refused(tmp_path, labels):
    """Labels are O, and B- and I- of the kinds that later stages know; others would be names that nobody looks at."""
    folder = own_classifier(tmp_path / "own", [0.0], (1, 1, 1), labels)

    with pytest.raises(Refused, match="MODEL_MANIFEST_INVALID"):
        manifest("ner", folder)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"files": 1}'])
def test_a_manifest_that_is_none_is_refused(slot, text):
    """Broken JSON is a broken manifest."""
    (slot / "manifest.json").write_text(text)

    with pytest.raises(Refused, match="MODEL_MANIFEST_INVALID"):
        manifest("nli", slot)


@pytest.mark.req("DPE-17")
def test_the_doctor_hears_about_every_slot(slot):
    """verify() names what is wrong and never raises."""
    slots = ("nli", "embed", "ner", "parser", "code")
    assert {(v.slot, v.ok) for v in verify()} == {(slot, True) for slot in slots}

    (slot / "model.onnx").write_bytes(b"")
    broken = {v.slot: v for v in verify(slot)}
    assert not broken["nli"].ok
    assert "MODEL_HASH_MISMATCH" in broken["nli"].hint
    assert broken["embed"].ok


@pytest.mark.req("DPE-17")
def test_the_code_is_checked():
    """What is installed is what the wheel recorded; an editable install records nothing."""
    check_code()


def test_every_bundled_model_has_a_card():
    """Licences and limits travel with the weights."""
    for name in ("nli", "embed", "ner", "parser"):
        assert "Licence" in (BUNDLED / name / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_a_copied_slot_is_as_good(tmp_path):
    """An own folder with the bundled files is accepted by its manifest alone."""
    shutil.copytree(BUNDLED / "nli", tmp_path / "nli")
    check(manifest("nli", tmp_path / "nli"))
