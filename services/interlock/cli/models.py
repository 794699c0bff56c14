"""``interlock models``: list the models, verify that they are the pinned ones, and serve them with Triton."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from interlock.cli.output import NEGATIVE, Format, Output, print_json
from interlock.domain.errors import Refused, unavailable
from interlock.dpe.inference import models
from interlock.dpe.inference.pull import MOST_BYTES, PullRules, pull
from interlock.dpe.inference.serving import SLOTS, ServingProfile, lay_out, served
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

TRITON_PORT = 8001
LOOK_S = 0.2

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="List, verify and fetch the models, and serve them with NVIDIA Triton.",
)

Nli = Annotated[
    Path | None,
    typer.Option("--nli", help="Folder of your own NLI model. Default: INTERLOCK_NLI_MODEL_DIR, or bundled."),
]
Embed = Annotated[
    Path | None,
    typer.Option("--embed", help="Folder of your own embedding model. Default: INTERLOCK_EMBED_MODEL_DIR, or bundled."),
]
Ner = Annotated[
    Path | None,
    typer.Option("--ner", help="Folder of your own name classifier. Default: INTERLOCK_NER_MODEL_DIR, or bundled."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, max=64, help="Rows in parallel. Default: INTERLOCK_DPE_THREADS.")
]


@app.command("list")
def show(nli: Nli = None, embed: Embed = None, ner: Ner = None, output: Output = Format.TEXT) -> None:
    """List every slot: its model, version, hash, licence, and where it runs with the current settings."""
    settings = _settings(nli, embed, ner)
    found = [_described(one, settings) for one in (*_served(settings), models.manifest(models.PARSER))]
    if output is Format.JSON:
        print_json({"models": found})
        return
    for one in found:
        typer.echo(f"{one['slot']:<6} {one['name']} {one['version']}, {one['licence']}, runs: {one['runtime']}")
        typer.echo(f"       {one['hash']}")


@app.command()
def verify(nli: Nli = None, embed: Embed = None, ner: Ner = None, output: Output = Format.TEXT) -> None:
    """Hash every file of every slot; with INTERLOCK_TRITON_URL set, also check the models that Triton serves.

    Exit 0: all are the pinned ones. 1: one is not, or Triton does not answer; each is named with a hint.
    """
    settings = _settings(nli, embed, ner)
    verdicts = models.verify(settings.nli_model_dir, settings.embed_model_dir, settings.ner_model_dir)
    if settings.triton_url:
        verdicts = [*verdicts, asyncio.run(_triton_verdict(settings))]
    if output is Format.JSON:
        print_json({"verdicts": [{"slot": v.slot, "ok": v.ok, "hint": v.hint} for v in verdicts]})
    else:
        for verdict in verdicts:
            typer.echo(f"{verdict.slot:<7} {'as pinned' if verdict.ok else verdict.hint}")
    if not all(verdict.ok for verdict in verdicts):
        raise typer.Exit(NEGATIVE)


@app.command("pull")
def fetch(
    url: Annotated[str, typer.Argument(help="https URL of a manifest.json (the whole slot) or of one file.")],
    sha256: Annotated[str, typer.Option("--sha256", help="Expected SHA-256 of the file at URL, 64 hex digits.")],
    *,
    slot: Annotated[str, typer.Option("--slot", help="nli, embed or ner.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder of the slot; it changes only if the hash is correct.")],
    max_bytes: Annotated[int, typer.Option("--max-bytes", min=1, help="Maximum size of a file in bytes.")] = MOST_BYTES,
    allow_local: Annotated[
        bool, typer.Option("--allow-local", help="Also accept file:// and http:// on loopback.")
    ] = False,
    output: Output = Format.TEXT,
) -> None:
    """Fetch a model by URL and hash. A file with another hash is refused and not kept.

    Example: interlock models pull https://host/nli/manifest.json --sha256 HEX --slot nli --dir models/nli
    """
    if slot not in SLOTS:
        raise typer.BadParameter(f"one of {', '.join(SLOTS)}", param_hint="--slot")
    rules = PullRules(most_bytes=max_bytes, local=allow_local)
    written = pull(url, sha256.lower(), slot=slot, folder=folder, rules=rules)
    if output is Format.JSON:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        typer.echo(f"{path}: as pinned")
    typer.echo(f"use it with INTERLOCK_{slot.upper()}_MODEL_DIR={folder}")


@app.command()
def layout(
    folder: Annotated[Path, typer.Argument(help="Folder of the model repository; models in it are replaced.")],
    *,
    profile: Annotated[
        ServingProfile, typer.Option("--profile", help="cpu: any machine. gpu: NVIDIA's image.")
    ] = ServingProfile.CPU,
    nli: Nli = None,
    embed: Embed = None,
    ner: Ner = None,
    threads: Threads = None,
    output: Output = Format.TEXT,
) -> None:
    """Write a model repository for Triton: the pinned files under their hashes, with their configurations.

    The gpu profile batches rows, so it does not take dynamically quantised files: fetch fp32 files with `models pull`.
    """
    settings = _settings(nli, embed, ner)
    chosen = _served(settings)
    written = lay_out(folder, chosen, profile, threads=threads or settings.model_threads)
    if output is Format.JSON:
        found = [{"slot": one.slot, "version": one.served_version, "hash": one.hash} for one in chosen]
        print_json({"folder": str(folder), "profile": str(profile), "models": found})
        return
    for path in written:
        typer.echo(str(path))
    typer.echo(f"serve it with: tritonserver --model-repository={folder} --model-control-mode=none")


@app.command()
def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="gRPC port. 0: any free port.")] = TRITON_PORT,
    *,
    host: Annotated[
        str, typer.Option("--host", help="Address to bind. Triton does not authenticate its callers.")
    ] = "127.0.0.1",
    nli: Nli = None,
    embed: Embed = None,
    ner: Ner = None,
    threads: Threads = None,
    output: Output = Format.TEXT,
) -> None:
    """Serve the models with the tritonserver of the nvidia-pytriton wheel, on CPU, until SIGTERM or Ctrl-C.

    Once every model is ready, one line {"event": "ready", "address": …} goes to standard output if that is not a terminal.
    Then start the dpe service with INTERLOCK_TRITON_URL=HOST:PORT.
    """
    from interlock.cli.local.tritonserver import TritonServer

    settings = _settings(nli, embed, ner)
    work = settings.state_dir / "triton"
    chosen = _served(settings)
    shutil.rmtree(work / "repository", ignore_errors=True)  # from an earlier run: Triton would serve any model in it
    lay_out(work / "repository", chosen, ServingProfile.CPU, threads=threads or settings.model_threads, link=True)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server = TritonServer(work / "repository", work, host=host, port=port)
    try:
        server.start()
        _tell_ready(server, [one.slot for one in chosen], as_json=output is Format.JSON)
        while not stop.wait(LOOK_S):
            if server.pid is None:
                raise unavailable("TRITON_ENDED", "tritonserver ended by itself", hint=f"see {server.log}")
    finally:
        server.stop()


def _tell_ready(server: Any, slots: list[str], *, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        print_json(
            {"event": "ready", "address": server.address, "pid": os.getpid(), "server_pid": server.pid, "models": slots}
        )
    else:
        typer.echo(f"ready: INTERLOCK_TRITON_URL={server.address}")


def _described(found: models.ModelManifest, settings: Settings) -> dict[str, str]:
    return {
        "slot": found.slot, "name": found.name, "version": found.version, "hash": found.hash, "licence": found.licence,
        "runtime": "triton" if settings.triton_url and found.slot in SLOTS else "embedded", "folder": str(found.folder),
    }  # fmt: skip


def _served(settings: Settings) -> list[models.ModelManifest]:
    return served(settings.nli_model_dir, settings.embed_model_dir, settings.ner_model_dir)


def _settings(nli: Path | None, embed: Path | None, ner: Path | None) -> Settings:
    """Return the settings, overridden by the folders on the command line."""
    given = {"nli_model_dir": nli, "embed_model_dir": embed, "ner_model_dir": ner}
    return load().model_copy(update={name: folder for name, folder in given.items() if folder is not None})


async def _triton_verdict(settings: Settings) -> models.ModelVerdict:
    """Return whether Triton serves the pinned models now."""
    from interlock.dpe.inference.triton import TritonInference

    try:
        nli, embed, ner = _served(settings)
        inference = TritonInference(
            nli=nli,
            embed=embed,
            ner=ner,
            url=settings.triton_url,
            timeout_s=settings.triton_timeout_s,
            ca_file=settings.triton_ca_file,
        )
        try:
            await inference.check()
        finally:
            inference.close()
    except Refused as refused:
        return models.ModelVerdict(
            "triton", ok=False, hint=f"{refused.reason}: {refused.message}; see INTERLOCK_TRITON_URL"
        )
    return models.ModelVerdict("triton", ok=True, hint="")
