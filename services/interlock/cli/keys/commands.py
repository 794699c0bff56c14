"""``interlock keys``: the file of master keys by version, and certificates of a development mesh (TOK-4, SVC-6).

No command prints a key. A fingerprint distinguishes two keys.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from interlock.cli.keys import certificates
from interlock.cli.keys.versions_used import versions_used
from interlock.cli.output import NEGATIVE, Format, Output, print_json, refusals
from interlock.domain.errors import invalid
from interlock.runtime.clock import iso8601, system_clock
from interlock.runtime.keys import keys_file
from interlock.runtime.keys.derivation import fingerprint, given_key
from interlock.runtime.keys.masters import MINIMUM_BYTES, Masters
from interlock.runtime.settings.loading import load as load_settings
from interlock.runtime.settings.model import Settings

app = typer.Typer(no_args_is_help=True, help="Create, rotate and check master keys; create development certificates.")

File = Annotated[Path | None, typer.Option("--file", help="File of master keys. Default: INTERLOCK_MASTER_KEYS_FILE.")]
DELAY_S = 120

V = TypeVar("V")


@app.callback()
def keys() -> None:
    """Create, rotate and check master keys; create development certificates."""


@dataclass(frozen=True)
class Line:
    """One version as ``list`` shows it."""

    version: int
    state: str
    not_before: str
    fingerprint: str
    audit_needs_it: bool | None
    """``None``: there is no local audit log."""


@app.command()
def new(file: File = None, output: Output = Format.TEXT) -> None:
    """Create a file of master keys. An existing single master key becomes version 1.

    Exit 0: written, readable by its owner only. 2: refused; an existing file is never overwritten.
    """
    with refusals(output):
        settings = load_settings()
        path, old = _path(file, settings), given_key(settings)
        made = Masters({1: old or secrets.token_bytes(MINIMUM_BYTES)})
        keys_file.create(path, made)
    _told(output, path, 1, "the previous master key" if old else "a new key")


@app.command()
def rotate(
    file: File = None,
    after: Annotated[
        int, typer.Option("--after", min=0, max=86_400, help="Seconds until the new version is used for signing.")
    ] = DELAY_S,
    output: Output = Format.TEXT,
) -> None:
    """Add a version. New sessions use it after its start time; running sessions keep their version.

    Processes re-read the file within a second. If each has its own copy, --after is the time that the copies may take.
    Exit 0: written. 2: refused.
    """

    def edit(held: Masters) -> Masters:
        begins = {version + 1: system_clock() + after * 1_000_000} if after else {}
        return replace(
            held,
            by_version={**held.by_version, version + 1: secrets.token_bytes(MINIMUM_BYTES)},
            not_before={**held.not_before, **begins},
        )

    with refusals(output):
        path = _path(file, load_settings())
        version = max(_held(path).by_version)
        made = keys_file.change(path, edit)
    _told(output, path, max(made.by_version), f"signs in {after} s" if after else "signs at once")


@app.command()
def retire(
    version: Annotated[int, typer.Argument(help="Tokens and grants below this version are refused from now on.")],
    file: File = None,
    output: Output = Format.TEXT,
) -> None:
    """Refuse tokens and grants of older versions, for example after a key theft. Audit data stay readable.

    This cannot be undone: a file with a lower minimum is refused from then on. Exit 0: written. 2: refused.
    """
    with refusals(output):
        path = _path(file, load_settings())
        held = _held(path)
        if version < held.minimum:
            raise invalid("MASTER_KEYS_INVALID", f"the minimum is already {held.minimum}, and cannot be lowered")
        keys_file.change(path, lambda found: replace(found, minimum=version))
    _told(output, path, version, "is now the lowest version whose tokens are accepted")


@app.command()
def drop(
    version: Annotated[int, typer.Argument(help="Version to remove from the file.")],
    file: File = None,
    lose: Annotated[
        bool,
        typer.Option(
            "--lose-audit-data", help="Drop it even if audit data need it. These data can never be verified again."
        ),
    ] = False,
    output: Output = Format.TEXT,
) -> None:
    """Remove a version that no audit data need any more.

    Exit 0: written. 2: refused: audit data need it, it is the signing version, or there is no local audit log.
    """
    with refusals(output):
        settings = load_settings()
        path = _path(file, settings)
        held, used = _held(path), versions_used(settings)
        if version not in held.by_version:
            raise invalid("MASTER_KEY_UNKNOWN", f"version {version} is not in {path}")
        if version == held.current(system_clock()):
            raise invalid("MASTER_KEY_IN_USE", f"version {version} is the signing version")
        if not lose and (used is None or version in used):
            raise invalid(
                "MASTER_KEY_NEEDED",
                f"version {version} is needed by audit data" if used else "there is no local audit log",
                hint="keep it; or use --lose-audit-data, and data that it sealed can never be verified or read again",
            )
        keys_file.change(
            path,
            lambda found: replace(
                found,
                by_version=_without(found.by_version, version),
                not_before=_without(found.not_before, version),
            ),
        )
    _told(output, path, version, "is gone")


@app.command(name="list")
def list_(file: File = None, output: Output = Format.TEXT) -> None:
    """Show the versions, the signing version, and the versions that audit data need. Exit 0: shown. 2: refused."""
    with refusals(output):
        settings = load_settings()
        path = _path(file, settings)
        lines = list(_lines(_held(path), versions_used(settings)))
    if output is Format.JSON:
        print_json({"file": str(path), "versions": [asdict(line) for line in lines]})
        return
    for line in lines:
        needed = {True: "needed by audit data", False: "", None: "audit log unknown"}[line.audit_needs_it]
        typer.echo(f"{line.version:>4}  {line.state:<9} {line.fingerprint}  {line.not_before:<28} {needed}".rstrip())


@app.command()
def check(file: File = None, output: Output = Format.TEXT) -> None:
    """Check that the file is private, strong, not rolled back, and complete for the audit data.

    Exit 0: it is. 1: audit data need a missing version. 2: refused.
    """
    with refusals(output):
        settings = load_settings()
        path = _path(file, settings)
        held, used = _held(path), versions_used(settings)
        keys_file.check_not_rolled_back(held, settings.state_dir)
        missing = sorted((used or set()) - set(held.by_version))
    if output is Format.JSON:
        print_json({"ok": not missing, "missing": missing, "audit_log": used is not None})
    elif missing:
        typer.echo(f"KEY_UNKNOWN: audit data need version {', '.join(map(str, missing))}; they cannot be verified")
    else:
        typer.echo("all versions are here" if used is not None else "good; there is no local audit log")
    if missing:
        raise typer.Exit(NEGATIVE)


@app.command(name="certificates")
def certificates_(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to. An existing authority is reused.")],
    days: Annotated[int, typer.Option("--days", min=1, max=825, help="Lifetime of the certificates in days.")] = 30,
    host: Annotated[
        list[str] | None, typer.Option("--host", help="Name or address of the agents' front; repeatable.")
    ] = None,
    output: Output = Format.TEXT,
) -> None:
    """Create an authority and one SPIFFE certificate per member of a mesh, for development. A second run renews them.

    Exit 0: written; keys are readable by their owner only. 2: refused.
    """
    with refusals(output):
        made = certificates.make(
            out, trust_domain=load_settings().tls_trust_domain, days=days, hosts=host or ("localhost", "127.0.0.1")
        )
    if output is Format.JSON:
        print_json({"authority": str(out / "ca.pem"), "certificates": [str(path) for path in made]})
        return
    for path in made:
        typer.echo(str(path))
    typer.echo(f"INTERLOCK_TLS_CA_FILE={out / 'ca.pem'}")


def _lines(held: Masters, used: set[int] | None) -> Iterator[Line]:
    current = held.current(system_clock())
    for version, key in sorted(held.by_version.items()):
        if version == current:
            state = "signs"
        elif version > current:
            state = "waits"
        else:
            state = "verifies" if version >= held.minimum else "retired"
        begins = held.not_before.get(version)
        needed = None if used is None else version in used
        yield Line(version, state, iso8601(begins) if begins else "", fingerprint(key), needed)


def _path(file: Path | None, settings: Settings) -> Path:
    path = file or settings.master_keys_file
    if path is None:
        raise invalid(
            "KEYS_FILE_NOT_NAMED", "no file of master keys", hint="give --file, or set INTERLOCK_MASTER_KEYS_FILE"
        )
    return path


def _held(path: Path) -> Masters:
    if not path.exists():
        raise invalid("KEYS_FILE_MISSING", f"{path} does not exist", hint="`interlock keys new` creates it")
    return keys_file.load(path)


def _without(mapping: Mapping[int, V], version: int) -> dict[int, V]:
    return {key: value for key, value in mapping.items() if key != version}


def _told(output: Format, path: Path, version: int, what: str) -> None:
    if output is Format.JSON:
        print_json({"file": str(path), "version": version, "what": what})
    else:
        typer.echo(f"{path}: version {version} {what}")
