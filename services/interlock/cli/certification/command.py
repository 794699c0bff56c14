"""``interlock decision certify``: run the compliance kit against an agent, or verify a certificate (DEC-9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.cli.certification import certificate
from interlock.cli.certification.kit import ComplianceKit, KitReport
from interlock.cli.certification.scenarios import bundled, of_file
from interlock.cli.output import NEGATIVE, OK, Format, Output, plain, print_json, refusals
from interlock.client.decision.reference.agents import AGENTS
from interlock.decision.wiring import profile_text
from interlock.domain.decision.agents import AgentDescriptor, described
from interlock.domain.decision.definition import ExperimentRules, defined
from interlock.domain.errors import Refused, invalid
from interlock.domain.merkle.note import MalformedNoteError, VerifierKey, verifier_key
from interlock.runtime.clock import system_clock
from interlock.runtime.settings.loading import load

COMMAND = typer.Argument(None, help="The agent's command, after --. It is started several times.", metavar="-- COMMAND")
DESCRIPTOR = typer.Option(None, "--descriptor", help="JSON file of what the agent declares.")
PROFILE = typer.Option("ml", "--profile", help="Bundled profile under which it is asked.")
DEFINITION = typer.Option(None, "--definition", help="JSON file of a definition of your own, instead of a profile.")
SCENARIOS = typer.Option(None, "--scenarios", help="JSON file of snapshots to ask it with, beside those of the kit.")
DEADLINE = typer.Option(2_000, "--deadline-ms", help="Time for each answer.", min=100, max=20_000)
CERTIFICATE = typer.Option(None, "--certificate", help="Where the signed certificate is written, if every test passes.")
VERIFY = typer.Option(None, "--verify", help="Verify this certificate; nothing is started.")
KEY = typer.Option("", "--key", help="The trusted key, name+hash+key. Default: that of this mesh's audit log.")


def certify(  # noqa: PLR0917 - the options of a command
    command: list[str] | None = COMMAND,
    descriptor: Path | None = DESCRIPTOR,
    profile: str = PROFILE,
    definition: Path | None = DEFINITION,
    scenarios: Path | None = SCENARIOS,
    deadline_ms: int = DEADLINE,
    certificate_file: Path | None = CERTIFICATE,
    verify: Path | None = VERIFY,
    key: str = KEY,
    output: Output = Format.TEXT,
) -> None:
    """Certify an agent in any language: schema, determinism, guards, explainability, isolation, deadline, crash.

    COMMAND is started with INTERLOCK_DECISION_AT and INTERLOCK_DECISION_TICKET, and pulls its work from there. Exit 0: it passed, or
    the certificate is valid. 1: it failed. 2: it cannot be asked, or the certificate is not valid.

    Examples: interlock decision certify --descriptor me.json -- node agent.mjs | interlock decision certify --verify me.cert
    """
    with refusals(output):
        if verify is not None:
            _show_verified(certificate.verified(verify, _trusted(key)), output)
            return
        if not command:
            raise invalid("CERTIFY_COMMAND_MISSING", "give the agent's command after --, or --verify FILE")
        rules = defined(_text(definition) if definition else profile_text(profile))
        agent = _descriptor(descriptor, command, rules)
        told = of_file(scenarios) if scenarios else bundled("" if definition else profile)
        report = asyncio.run(ComplianceKit(command, agent, rules, told, deadline_ms).run())
        if report.passed and certificate_file:
            signed = certificate.signed(report, load_checkpoint_key(load()), at_us=system_clock())
            _write(certificate_file, signed)
    if output is Format.JSON:
        print_json(report.told())
    else:
        for line in _lines(report, certificate_file):
            typer.echo(plain(line).rstrip())
    raise typer.Exit(OK if report.passed else NEGATIVE)


def _descriptor(path: Path | None, command: list[str], rules: ExperimentRules) -> AgentDescriptor:
    """Return the checked descriptor; of a reference agent that is started by its command, its own."""
    if path is not None:
        return described(_object(_text(path), path), rules)
    if command[-1] in AGENTS and "agent" in command:
        return described(AGENTS[command[-1]].descriptor.told(), rules)
    raise invalid("CERTIFY_DESCRIPTOR_MISSING", "give what the agent declares with --descriptor FILE")


def _object(text: str, path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise invalid("CERTIFY_FILE_INVALID", f"{path}: it is no JSON object")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise invalid("CERTIFY_FILE_INVALID", f"{path}: {type(error).__name__}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise invalid("CERTIFY_FILE_INVALID", f"{path}: {type(error).__name__}") from None


def _trusted(key: str) -> VerifierKey:
    if not key:
        return load_checkpoint_key(load()).verifier()
    try:
        return verifier_key(key)
    except MalformedNoteError as error:
        raise _bad_key(str(error)) from None


def _bad_key(why: str) -> Refused:
    return invalid("CERTIFY_KEY_INVALID", f"--key: {why}")


def _show_verified(found: certificate.VerifiedCertificate, output: Format) -> None:
    if output is Format.JSON:
        print_json({"valid": True, "key": str(found.key), "certificate": found.told})
        return
    agent = found.told["agent"]
    typer.echo(
        plain(f"valid: {agent['name']} {agent['version']} ({agent['role']}) passed on {found.told['certified_at']}")
    )
    typer.echo(plain(f"signed by {found.key}"))


def _lines(report: KitReport, path: Path | None) -> Iterator[str]:
    agent = report.agent
    yield f"{agent.name} {agent.version}  {agent.role}  {agent.authority.name}  {report.scenarios} scenarios"
    for one in report.results:
        yield f"  {'pass' if one.passed else 'FAIL'}  {one.name}"
        yield from (f"          {finding}" for finding in one.told()["findings"])
        yield from (f"          ({note})" for note in one.told()["notes"])
    yield "passed" if report.passed else "failed"
    if report.passed and path:
        yield f"certificate: {path}"
    elif not report.passed and report.output:
        yield "what it printed:"
        yield from (f"  {line}" for line in report.output.splitlines()[-8:])
