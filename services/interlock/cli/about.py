"""``interlock version``: which Interlock this is, and what it runs on. For a report of a defect."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import typer

from interlock.cli.output import Format, Output, print_json

PARTS = ("grpcio", "protobuf", "onnxruntime", "starlette", "uvicorn")
"""Packages whose version explains most."""


def about(output: Output = Format.TEXT) -> None:
    """Print the version of Interlock, of Python, of the system and of the packages that matter. Exit 0: printed."""
    found = {
        "interlock": version("interlock"), "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}", **{name: _version(name) for name in PARTS},
    }  # fmt: skip
    if output is Format.JSON:
        print_json({**found, "executable": sys.executable})
        return
    for name, value in found.items():
        typer.echo(f"{name:<12}{value or 'not installed'}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
