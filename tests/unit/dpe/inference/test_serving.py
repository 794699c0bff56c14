"""The model repository for Triton: pinned files under their hashes, with configurations that Triton's own schema reads."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.models import BUNDLED, manifest
from interlock.dpe.inference.serving import MODEL_FILE, SLOTS, ServingProfile, lay_out, served
from interlock.dpe.inference.triton_wire import MOST_ROWS, verified
from tests.support.dpe import own_model
from tests.support.paths import ROOT

pytestmark = pytest.mark.req("DPE-17", "DPE-18")
LABELS = ("entailment", "neutral", "contradiction")


def config(folder: Path, slot: str):
    """Return a laid out model's configuration as Triton would parse it."""
    return text_format.Parse((folder / slot / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())


@pytest.mark.parametrize("link", [True, False])
def test_a_layout_holds_the_pinned_bytes_under_their_hash(tmp_path, link):
    """One version, whose number is made of the hash; linked or copied, the bytes are the bundled ones."""
    lay_out(tmp_path, [manifest("nli")], ServingProfile.CPU, threads=2, link=link)
    (version,) = (path for path in (tmp_path / "nli").iterdir() if path.is_dir())
    model = version / MODEL_FILE

    assert version.name == manifest("nli").served_version
    assert f"sha256:{hashlib.sha256(model.read_bytes()).hexdigest()}" == manifest("nli").hash
    assert model.is_symlink() is link
    assert (version / "model.py").read_bytes() == (ROOT / "deploy/triton/model.py").read_bytes()


@pytest.mark.parametrize("slot", SLOTS)
def test_a_cpu_configuration_is_what_the_client_verifies(tmp_path, slot):
    """Triton's schema reads it, and our client believes it for these bytes and for no others."""
    lay_out(tmp_path, [manifest(slot)], ServingProfile.CPU, threads=3, link=True)
    found = config(tmp_path, slot)
    model = verified(manifest(slot), found)

    assert (found.backend, found.parameters["threads"].string_value) == ("python", "3")
    assert model.most_rows == MOST_ROWS
    assert found.dynamic_batching.default_queue_policy.max_queue_size > 0
    with pytest.raises(Refused, match="MODEL_HASH_MISMATCH"):
        verified(manifest("embed" if slot == "nli" else "nli"), found)


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("profile", list(ServingProfile))
def test_every_model_has_two_instances(slot, profile):
    """With one, Triton's scheduler misses at times that it is free again: a request in five waited for half a second."""
    text = (ROOT / f"deploy/triton/model_repository/{slot}/configs/{profile}.pbtxt").read_text()
    (group,) = text_format.Parse(text, model_config_pb2.ModelConfig()).instance_group

    assert group.count == 2


def test_a_gpu_configuration_names_the_tensors_of_the_file(tmp_path):
    """ONNX Runtime's backend wants the file's own names; the client takes them from the configuration."""
    model = manifest("nli", own_model(tmp_path / "own", [1.0, 0.0, 0.0], LABELS))
    lay_out(tmp_path / "repository", [model], ServingProfile.GPU, threads=2)
    found = config(tmp_path / "repository", "nli")
    group = found.instance_group[0]

    assert (found.platform, found.backend) == ("onnxruntime_onnx", "")
    assert group.kind == model_config_pb2.ModelInstanceGroup.KIND_GPU
    assert list(found.dynamic_batching.preferred_batch_size) == [32, 64]
    assert [(one.name, list(one.dims)) for one in found.input] == [("input_ids", [-1])]
    assert verified(model, found).output == "logits"
    assert not list((tmp_path / "repository").rglob("*.py"))


def test_a_gpu_gets_no_file_whose_scores_depend_on_their_neighbours(tmp_path):
    """The bundled int8 files scale by the batch; a GPU batches."""
    with pytest.raises(Refused) as refused:
        lay_out(tmp_path, [manifest("nli")], ServingProfile.GPU, threads=2)

    assert (refused.value.kind, refused.value.reason) == (Kind.INVALID, "MODEL_NOT_BATCHABLE")
    assert "models pull" in refused.value.metadata["hint"]
    assert not (tmp_path / "nli").exists()


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("profile", list(ServingProfile))
def test_every_slot_has_both_configurations(slot, profile):
    """nli, embed and ner, for each profile, in Triton's own schema."""
    text = (ROOT / f"deploy/triton/model_repository/{slot}/configs/{profile}.pbtxt").read_text()
    found = text_format.Parse(text, model_config_pb2.ModelConfig())

    assert (found.name, found.max_batch_size) == (slot, 64)
    assert found.dynamic_batching.default_queue_policy.allow_timeout_override


def test_a_model_is_replaced_whole(tmp_path):
    """A second layout leaves one version, the new one."""
    lay_out(tmp_path, [manifest("nli")], ServingProfile.CPU, threads=2, link=True)
    other = manifest("nli", own_model(tmp_path / "own", [1.0, 0.0, 0.0], LABELS))
    lay_out(tmp_path, [other], ServingProfile.CPU, threads=2, link=True)

    assert [path.name for path in (tmp_path / "nli").iterdir() if path.is_dir()] == [other.served_version]
    assert not list(tmp_path.glob(".*"))


def test_a_folder_that_is_no_repository_is_left_alone(tmp_path):
    """Nobody's data is removed because it has a model's name."""
    (tmp_path / "nli").mkdir()
    (tmp_path / "nli" / "precious").write_text("data")

    with pytest.raises(Refused, match="REPOSITORY_FOREIGN"):
        lay_out(tmp_path, [manifest("nli")], ServingProfile.CPU, threads=2)
    assert (tmp_path / "nli" / "precious").read_text() == "data"


def test_a_tampered_file_is_not_laid_out(tmp_path):
    """What does not hash to its manifest goes nowhere."""
    folder = own_model(tmp_path / "own", [1.0, 0.0, 0.0], LABELS)
    model = manifest("nli", folder)
    (folder / "model.onnx").write_bytes(b"other")

    with pytest.raises(Refused, match="MODEL_HASH_MISMATCH"):
        lay_out(tmp_path / "repository", [model], ServingProfile.CPU, threads=2)
    assert not (tmp_path / "repository" / "nli").exists()


def test_an_unwritable_place_is_named(tmp_path):
    """A file where the folder should be is a refusal, not a traceback."""
    (tmp_path / "file").write_text("")

    with pytest.raises(Refused, match="REPOSITORY_UNWRITABLE"):
        lay_out(tmp_path / "file", [manifest("embed")], ServingProfile.CPU, threads=2)


def test_every_model_but_the_parser_is_served():
    """The parser is a package of many files and stays in the process."""
    assert [one.slot for one in served()] == ["nli", "embed", "ner"]
    assert all((BUNDLED / one.slot / one.model).is_file() for one in served())
