"""Generate services/interlock/api from protos/ and third_party/envoy, or check that what is committed is fresh.

python scripts/gen_protos.py            write
python scripts/gen_protos.py --check    exit 1 when the committed stubs differ
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
TARGET = ROOT / "services" / "interlock" / "api"
ENVOY = ROOT / "third_party" / "envoy"
"""What is used of Envoy's API. It is no part of ours: neither the published descriptors nor the clients have it."""
DESCRIPTORS = "descriptors.binpb"


def generate(out: Path) -> Path:
    """Write the package ``interlock.api`` below *out* and return its folder."""
    # For clients without a generator, and for grpcurl: every message and service, with its comments.
    published = (f"--descriptor_set_out={out / DESCRIPTORS}", "--include_imports", "--include_source_info")
    _protoc(PROTOS, out, *published)
    _protoc(ENVOY, out)
    package = out / "interlock" / "api"
    (out / DESCRIPTORS).rename(package / DESCRIPTORS)
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__init__.py").write_text('"""Generated from protos/ by scripts/gen_protos.py; never edited."""\n')
    return package


def _protoc(root: Path, out: Path, *options: str) -> None:
    """Write the stubs of all protos below *root*."""
    sources = sorted(str(p.relative_to(root)) for p in root.rglob("*.proto"))
    bin_dir = Path(sys.executable).parent
    command = [
        sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", *options,
        f"--python_out={out}", f"--grpc_python_out={out}", f"--mypy_out=quiet:{out}", f"--mypy_grpc_out=quiet:{out}",
        *(f"--plugin={p}={bin_dir / p}" for p in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")),
        *sources,
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=root)


def differences(left: Path, right: Path) -> list[str]:
    """Return the relative paths that are not byte for byte the same in both folders."""
    kinds = ("*.py*", "*.binpb")
    found = ((d, p) for d in (left, right) for kind in kinds for p in d.rglob(kind))
    names = {str(p.relative_to(d)) for d, p in found if "__pycache__" not in p.parts}
    return sorted(n for n in names if not _same(left / n, right / n))


def _same(left: Path, right: Path) -> bool:
    return left.exists() and right.exists() and filecmp.cmp(left, right, shallow=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        fresh = generate(Path(scratch))
        if check:
            stale = differences(fresh, TARGET)
            print("\n".join(f"stale: {name}" for name in stale) or "stubs are fresh")
            return 1 if stale else 0
        shutil.rmtree(TARGET, ignore_errors=True)
        shutil.copytree(fresh, TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
