"""Write the stubs of clients in other languages from protos/.

python scripts/gen_clients.py go        clients/go/gen; needs go, whose plugins clients/go/go.mod pins

Node needs none: its client reads services/interlock/api/descriptors.binpb. Java's come with its own build, clients/java/pom.xml.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
GO = ROOT / "clients" / "go"
GO_MODULE = "interlock.dev/clients/go"
GO_PLUGINS = ("google.golang.org/protobuf/cmd/protoc-gen-go", "google.golang.org/grpc/cmd/protoc-gen-go-grpc")


def protoc(*options: str | Path, path: str | None = None) -> None:
    """Run protoc over all of protos/; a plugin is found in *path*."""
    sources = sorted(str(p.relative_to(PROTOS)) for p in PROTOS.rglob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", *map(str, options), *sources]
    env = {**os.environ, "PATH": path or os.environ["PATH"]}
    subprocess.run(command, check=True, cwd=PROTOS, env=env)


def generate_go(out: Path) -> None:
    """Write the Go packages ``interlock.dev/clients/go/gen/...`` below *out*, as ``gen/...``."""
    with tempfile.TemporaryDirectory() as plugins:
        for plugin in GO_PLUGINS:
            subprocess.run(["go", "build", "-o", plugins, plugin], check=True, cwd=GO)
        path = f"{plugins}{os.pathsep}{os.environ['PATH']}"
        module = f"module={GO_MODULE}"
        protoc(f"--go_out={out}", f"--go_opt={module}", f"--go-grpc_out={out}", f"--go-grpc_opt={module}", path=path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=["go"])
    parser.add_argument("--out", type=Path, default=GO, help="folder of the client; default: its place here")
    out: Path = parser.parse_args().out
    shutil.rmtree(out / "gen", ignore_errors=True)
    generate_go(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
