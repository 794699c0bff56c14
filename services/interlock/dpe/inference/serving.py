"""A Triton model repository built from the pinned files, so the served bytes are the hashed bytes (DPE-17, DPE-18).

``deploy/triton`` holds the configurations and the code of the CPU profile. The weights stay in their slots and are
linked or copied into the repository. The version of each model is made from its hash, so a client that expects other
bytes finds no such version.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from interlock.domain.errors import invalid, unavailable
from interlock.dpe.inference.models import ModelManifest, contents, manifest

SLOTS = ("nli", "embed", "ner")
MODEL_FILE = "model.onnx"
SCALED_BY_BATCH = b"DynamicQuantizeLinear"
"""The operator that scales activations over the whole batch."""

_PYTHON = 'backend: "python"'
_HERE = Path(__file__).resolve()
_PLACES = (_HERE.parents[2] / "_deploy" / "triton", _HERE.parents[4] / "deploy" / "triton")  # of a wheel, of a checkout
_ELEMENTS = {"tensor(int64)": "TYPE_INT64", "tensor(float)": "TYPE_FP32"}


class ServingProfile(StrEnum):
    """The hardware profile on which Triton runs the models."""

    CPU = "cpu"
    GPU = "gpu"


def served(
    nli_model_dir: Path | None = None, embed_model_dir: Path | None = None, ner_model_dir: Path | None = None
) -> list[ModelManifest]:
    """Return the manifests of the served slots: every model except the parser."""
    folders = {"nli": nli_model_dir, "embed": embed_model_dir, "ner": ner_model_dir}
    return [manifest(slot, folders[slot]) for slot in SLOTS]


def lay_out(
    folder: Path, models: Iterable[ModelManifest], profile: ServingProfile, *, threads: int, link: bool = False
) -> list[Path]:
    """Write a model repository to *folder* and return the folders of its models. An existing model is replaced.

    Refused with MODEL_HASH_MISMATCH, MODEL_MISSING, MODEL_NOT_BATCHABLE (a GPU batches, and the scores of this file
    would depend on the batch), REPOSITORY_UNWRITABLE, or REPOSITORY_FOREIGN (a folder of that name holds something
    else).
    """
    ready = [(model, data := contents(model, model.model), _config(model, profile, data, threads)) for model in models]
    return [_place_model(folder, model, None if link else data, config) for model, data, config in ready]


def _place_model(folder: Path, model: ModelManifest, data: bytes | None, config: str) -> Path:
    """Write one model to a temporary folder, then move it into place. Without *data* the pinned file is linked."""
    home, fresh = folder / model.slot, folder / f".{model.slot}.new"
    if home.exists() and not (home / "config.pbtxt").is_file():
        raise invalid("REPOSITORY_FOREIGN", f"{home} is not a model of a repository", hint="choose an empty folder")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        version = fresh / model.served_version
        version.mkdir(parents=True)
        if data is None:
            (version / MODEL_FILE).symlink_to((model.folder / model.model).resolve())
        else:
            (version / MODEL_FILE).write_bytes(data)
        if _PYTHON in config:
            shutil.copyfile(_asset("model.py"), version / "model.py")
        (fresh / "config.pbtxt").write_text(config, encoding="utf-8")
        shutil.rmtree(home, ignore_errors=True)
        fresh.rename(home)
    except OSError as error:
        raise invalid("REPOSITORY_UNWRITABLE", f"{folder}: {type(error).__name__}") from None
    return home


def _config(model: ModelManifest, profile: ServingProfile, data: bytes, threads: int) -> str:
    """Return the slot's configuration with the values that depend on the file: its hash and, on a GPU, its tensors."""
    path = _asset(f"model_repository/{model.slot}/configs/{profile}.pbtxt")
    lines = [path.read_text(encoding="utf-8").rstrip(), _parameter("sha256", model.hash.removeprefix("sha256:"))]
    if profile is ServingProfile.CPU:
        lines.append(_parameter("threads", str(threads)))
    else:
        lines += _tensors(model, data)
    return "\n".join(lines) + "\n"


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}", value {{ string_value: "{value}" }} }}'


def _tensors(model: ModelManifest, data: bytes) -> list[str]:
    """Return inputs and output under the names of the file, because ONNX Runtime requires them."""
    if SCALED_BY_BATCH in data:
        raise invalid(
            "MODEL_NOT_BATCHABLE",
            f"slot {model.slot}: the file is quantised dynamically, so a batch would change its scores",
            hint=f"fetch an fp32 file with `interlock models pull` and pass its folder with --{model.slot}",
        )
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        inputs, output = session.get_inputs(), session.get_outputs()[0]
        lines = [_tensor("input", one.name, one.type, one.shape) for one in inputs]
        return [*lines, _tensor("output", output.name, output.type, output.shape)]
    except Exception as error:
        raise unavailable("MODEL_UNUSABLE", f"slot {model.slot}: {type(error).__name__}", slot=model.slot) from error


def _tensor(kind: str, name: str, element: str, shape: Sequence[int | str]) -> str:
    sizes = ", ".join(
        str(size) if isinstance(size, int) else "-1" for size in shape[1:]
    )  # the batch dimension is implicit
    return f'{kind} {{ name: "{name}", data_type: {_ELEMENTS[element]}, dims: [ {sizes} ] }}'


def _asset(name: str) -> Path:
    for place in _PLACES:
        if (place / name).is_file():
            return place / name
    raise unavailable("TRITON_FILES_MISSING", f"{name} is not installed", retry_after_ms=0, hint="reinstall interlock")
