"""``interlock models``: list, verify, pull, layout, on real files."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from typer.testing import CliRunner

from interlock.cli.models import app
from interlock.domain.errors import Refused
from interlock.dpe.inference.models import BUNDLED, manifest
from tests.support.dpe import own_classifier, own_model

pytestmark = pytest.mark.req("DPE-17")
LABELS = ("entailment", "neutral", "contradiction")


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def found(*arguments: object) -> dict:
    """Return what a command prints as JSON."""
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERLOCK_TRITON_URL", raising=False)
    monkeypatch.delenv("INTERLOCK_NLI_MODEL_DIR", raising=False)
    monkeypatch.delenv("INTERLOCK_EMBED_MODEL_DIR", raising=False)
    monkeypatch.delenv("INTERLOCK_NER_MODEL_DIR", raising=False)


def test_list_names_every_slot_and_where_it_runs(monkeypatch):
    """Model, version, hash, licence, runtime, for people and for programs."""
    here = found("list")["models"]
    monkeypatch.setenv("INTERLOCK_TRITON_URL", "127.0.0.1:1")
    there = {one["slot"]: one["runtime"] for one in found("list")["models"]}

    slots = ("nli", "embed", "ner", "parser")
    assert {(one["slot"], one["hash"]) for one in here} == {(slot, manifest(slot).hash) for slot in slots}
    assert {one["runtime"] for one in here} == {"embedded"}
    assert there == {"nli": "triton", "embed": "triton", "ner": "triton", "parser": "embedded"}
    assert manifest("nli").hash in run("list").stdout


def test_list_shows_an_own_model(tmp_path):
    """--nli goes over the bundled one."""
    folder = own_model(tmp_path / "own", [1.0, 0, 0], LABELS)
    shown = {one["slot"]: one["name"] for one in found("list", "--nli", folder)["models"]}

    assert shown["nli"] == "constant"


def test_the_setting_names_an_own_embedding_model(tmp_path, monkeypatch):
    """INTERLOCK_EMBED_MODEL_DIR is listed, verified and laid out like the bundled one."""
    monkeypatch.setenv("INTERLOCK_EMBED_MODEL_DIR", str(tmp_path / "embed"))
    shutil.copytree(BUNDLED / "embed", tmp_path / "embed")
    shown = {one["slot"]: one["folder"] for one in found("list")["models"]}
    assert shown["embed"] == str(tmp_path / "embed")
    with (tmp_path / "embed" / "model.int8.onnx").open("ab") as file:
        file.write(b"\0")

    assert "INTERLOCK_EMBED_MODEL_DIR" in run("verify").stdout
    assert "MODEL_HASH_MISMATCH" in str(run("layout", tmp_path / "repository").exception)


def test_an_own_classifier_is_listed_verified_and_laid_out(tmp_path, monkeypatch):
    """--ner goes over the setting, the setting over the bundled one."""
    for name in ("set", "given"):
        own_classifier(tmp_path / name, [float(len(name)), 0, 0], (1, 1, 3))
    monkeypatch.setenv("INTERLOCK_NER_MODEL_DIR", str(tmp_path / "set"))
    by_setting = {one["slot"]: one["folder"] for one in found("list")["models"]}
    by_option = {one["slot"]: one["folder"] for one in found("list", "--ner", tmp_path / "given")["models"]}
    laid = {
        one["slot"]: one["hash"]
        for one in found("layout", tmp_path / "repository", "--ner", tmp_path / "given")["models"]
    }

    assert (by_setting["ner"], by_option["ner"]) == (str(tmp_path / "set"), str(tmp_path / "given"))
    assert laid["ner"] == manifest("ner", tmp_path / "given").hash
    (tmp_path / "set" / "model.onnx").write_bytes(b"other")
    assert "INTERLOCK_NER_MODEL_DIR" in run("verify").stdout


def test_verify_says_yes_and_no(tmp_path):
    """Exit 0 when every file is the pinned one, 1 with the slot and a hint when one is not."""
    assert run("verify").exit_code == 0
    folder = own_model(tmp_path / "own", [1.0, 0, 0], LABELS)
    (folder / "model.onnx").write_bytes(b"other")
    result = run("verify", "--nli", folder, "-o", "json")
    verdicts = {one["slot"]: one for one in json.loads(result.stdout)["verdicts"]}

    assert result.exit_code == 1
    assert "MODEL_HASH_MISMATCH" in verdicts["nli"]["hint"]
    assert verdicts["embed"]["ok"]


def test_verify_asks_triton_too(monkeypatch):
    """A server that is away is a no, with the setting to look at."""
    monkeypatch.setenv("INTERLOCK_TRITON_URL", "127.0.0.1:1")
    result = run("verify", "-o", "json")
    verdict = json.loads(result.stdout)["verdicts"][-1]

    assert result.exit_code == 1
    assert (verdict["slot"], verdict["ok"]) == ("triton", False)
    assert "TRITON_UNAVAILABLE" in verdict["hint"]


def test_pull_fetches_a_slot_that_can_be_used(tmp_path):
    """From a URL and a hash to a folder for INTERLOCK_NLI_MODEL_DIR."""
    source = own_model(tmp_path / "site", [1.0, 0, 0], LABELS) / "manifest.json"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    options = ("--sha256", digest.upper(), "--slot", "nli", "--dir", tmp_path / "got", "--allow-local")
    result = run("pull", source.as_uri(), *options)

    assert result.exit_code == 0, result.output
    assert f"INTERLOCK_NLI_MODEL_DIR={tmp_path / 'got'}" in result.stdout
    assert run("verify", "--nli", tmp_path / "got").exit_code == 0


def test_pull_refuses_what_is_not_pinned(tmp_path):
    """The refusal is the library's own, with its reason."""
    source = own_model(tmp_path / "site", [1.0, 0, 0], LABELS) / "model.onnx"
    options = ("--sha256", "0" * 64, "--slot", "nli", "--dir", tmp_path / "got")

    assert "URL_REFUSED" in str(run("pull", source.as_uri(), *options).exception)
    refused = run("pull", source.as_uri(), *options, "--allow-local").exception
    assert isinstance(refused, Refused)
    assert refused.reason == "MODEL_HASH_MISMATCH"


def test_pull_knows_its_slots(tmp_path):
    """A slot that does not exist is bad usage."""
    options = ("--sha256", "0" * 64, "--slot", "vision", "--dir", tmp_path)

    assert run("pull", "https://models.example/m.onnx", *options).exit_code == 2


def test_layout_writes_a_repository(tmp_path):
    """Every model but the parser, under the versions made of their hashes; the command to serve them is shown."""
    result = found("layout", tmp_path / "repository")

    assert {(m["slot"], m["version"]) for m in result["models"]} == {
        (slot, manifest(slot).served_version) for slot in ("nli", "embed", "ner")
    }
    assert (tmp_path / "repository" / "nli" / manifest("nli").served_version / "model.onnx").is_file()
    assert "tritonserver --model-repository=" in run("layout", tmp_path / "repository").stdout


def test_layout_for_a_gpu_wants_own_models(tmp_path):
    """One file that cannot be batched, and nothing is written."""
    nli = own_model(tmp_path / "own", [1.0, 0, 0], LABELS)
    refused = run("layout", tmp_path / "repository", "--profile", "gpu", "--nli", nli).exception

    assert isinstance(refused, Refused)  # the bundled embeddings are int8
    assert refused.reason == "MODEL_NOT_BATCHABLE"
    assert not (tmp_path / "repository").exists()
