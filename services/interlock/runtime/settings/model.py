"""One documented settings model: environment ``INTERLOCK_*`` over a YAML file over defaults that need neither."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)

from interlock.domain.errors import invalid
from interlock.domain.risk.regulatory import DOMAINS, canonical_domain
from interlock.runtime import failpoints
from interlock.runtime.settings.checkpointing import Checkpointing
from interlock.runtime.settings.outgoing import Outgoing
from interlock.runtime.settings.protection import Protection
from interlock.runtime.settings.retaining import Retaining
from interlock.runtime.settings.storing import SessionStoring

CONFIG_FILE = "INTERLOCK_CONFIG_FILE"
_HINT = "see docs/configuration.md"

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class Settings(SessionStoring, Protection, Outgoing, Checkpointing, Retaining):
    """Settings of every Interlock process. Each field says what it does, its unit, and what absence means."""

    model_config = SettingsConfigDict(env_prefix="INTERLOCK_", extra="forbid", frozen=True, yaml_file_encoding="utf-8")

    upstream_base_url: str = Field(
        default="",
        description="OpenAI-compatible base URL of the model provider, such as https://host/v1. "
        "Absent: /v1/chat/completions and Dispatch are refused with UPSTREAM_NOT_CONFIGURED; Check works.",
    )
    upstream_api_key: SecretStr | None = Field(
        default=None,
        description="Key that the sidecar presents to the provider. Absent: the caller's own bearer token is passed on.",
    )
    audit_url: str = Field(
        default="",
        description="Database of the audit log, sqlite:///PATH or postgresql://ROLE@HOST/DATABASE. Absent: audit.db below "
        "state_dir.",
    )
    state_dir: Path = Field(
        default=Path(".interlock"), description="Folder for embedded state and the generated master key."
    )
    master_key: SecretStr | None = Field(
        default=None,
        description="Master key, 64 hex digits or more. Absent: one is made once below state_dir, readable by its owner "
        "only. All services of a mesh need the same one.",
    )
    api_keys_file: Path | None = Field(
        default=None,
        description="YAML file of accepted API keys: a mapping of name to the key's SHA-256 in hex, or to a list of them. Read "
        "again when it changes. Absent: any bearer token is accepted, and its hash is the session's scope.",
    )

    host: str = Field(default="127.0.0.1", description="Address that every server binds.")
    sidecar_http_port: Port = Field(default=7070, description="Port of the OpenAI HTTP front. 0: any free port.")
    sidecar_grpc_port: Port = Field(default=7071, description="Port of the sidecar's gRPC front. 0: any free port.")
    session_port: Port = Field(default=7081, description="Port of the session service. 0: any free port.")
    policy_port: Port = Field(default=7082, description="Port of the policy service. 0: any free port.")
    dpe_port: Port = Field(default=7083, description="Port of the dpe service. 0: any free port.")
    audit_port: Port = Field(default=7084, description="Port of the audit service. 0: any free port.")
    oversight_port: Port = Field(default=7085, description="Port of the oversight service. 0: any free port.")
    oversight_http_port: Port = Field(default=7075, description="Port of the reviewers' page. 0: any free port.")
    metrics_port: Port = Field(
        default=9464, description="Port of /metrics for services without HTTP. 0: any free port."
    )
    session_address: str = Field(default="127.0.0.1:7081", description="Where a separate sidecar finds session.")
    policy_address: str = Field(default="127.0.0.1:7082", description="Where a separate sidecar finds policy.")
    dpe_address: str = Field(default="127.0.0.1:7083", description="Where a separate sidecar finds dpe.")
    audit_address: str = Field(default="127.0.0.1:7084", description="Where a separate sidecar finds audit.")
    oversight_address: str = Field(
        default="127.0.0.1:7085", description="Where `interlock oversight` finds the oversight service."
    )
    oversight_base_url: str = Field(
        default="",
        description="Base URL of the reviewers' page as reviewers open it, such as https://review.example.com; requests for "
        "another host are refused. Absent: 127.0.0.1, localhost and [::1] with the page's own port.",
    )
    oversight_view_s: int = Field(
        default=900, ge=60, le=28_800, description="How long a reviewer stays signed in to look at the queue, seconds."
    )
    public_base_url: str = Field(
        default="",
        description="Base of the URIs in CRP-Provenance-Report-URI and CRP-Compliance-Audit-Trail-URI. Absent: the HTTP "
        "front's own address.",
    )

    default_policy: str = Field(
        default="", description="Safety policy of this deployment; every request's policy is joined with it."
    )
    decrement_low: float = Field(default=0.00, ge=0.00, le=0.05, description="Cost of a LOW response.")
    decrement_medium: float = Field(default=0.05, ge=0.02, le=0.10, description="Cost of a MEDIUM response.")
    decrement_high: float = Field(default=0.15, ge=0.10, le=0.25, description="Cost of a HIGH response.")
    decrement_critical: float = Field(default=0.35, ge=0.25, le=0.50, description="Cost of a CRITICAL response.")
    agents_file: Path | None = Field(
        default=None,
        description="YAML file of registered agent types (SPEC-012 §7.1): keys as SHA-256, limits, strategies, policy. Read "
        "again when it changes; a bad one refuses to start, later it is told and the good one stays. Absent: none.",
    )
    require_registered_agents: bool = Field(
        default=False,
        description="Whether only callers whose key belongs to a registered agent type may make sessions. Needs agents_file.",
    )
    reviewers_file: Path | None = Field(
        default=None,
        description="YAML file of reviewers and their Ed25519 public keys, whose approvals CRP-Oversight-Token carries. Read "
        "again when it changes. Absent: nobody can approve anything.",
    )
    reviewers_by_rpc: bool = Field(
        default=False,
        description="Whether RegisterReviewer may add reviewers beside those of reviewers_file, in memory. Only where mutual "
        "TLS says who calls: whoever reaches the policy port otherwise could make itself a reviewer.",
    )
    hold_expires_s: int = Field(
        default=86_400,
        ge=1,
        le=2_592_000,
        description="How long a response is held for a reviewer, seconds. Nobody has decided by then: it is denied and deleted.",
    )
    agent_cache_s: Seconds = Field(
        default=3, description="How long a sidecar keeps the agent type of a key before it asks policy again, seconds."
    )
    data_region: str = Field(
        default="",
        description="Jurisdiction in which this deployment processes and stores, two capital letters such as EU. A call that "
        "demands another is refused with DATA_RESIDENCY_VIOLATION. Absent: every call that demands one is refused.",
    )
    refuse_persistent_deficiency: bool = Field(
        default=False,
        description="Whether a session whose last two windows were of quality tier D is refused its next one with 503 "
        "(SPEC-004 §13.2). Absent: it is warned only.",
    )
    max_windows: int = Field(default=5, ge=1, le=10_000, description="Windows in a row that a session may have.")
    max_loop_depth: int = Field(default=5, ge=0, le=100, description="Levels of agents below the root.")
    max_fan_out: int = Field(default=10, ge=1, le=1000, description="Children of one window.")
    max_dag_nodes: int = Field(default=50, ge=1, le=10_000, description="Windows of one session.")
    max_delegations: int = Field(
        default=20, ge=0, le=1000, description="Sub-agents that one session may start; an agent type may allow fewer."
    )
    max_roots_per_minute: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Root sessions that one key may begin in a minute, counted in the session store; more are refused with "
        "ROOT_SESSIONS_EXCEEDED, since every root has a full budget. Callers without a key count as one. 0: no bound.",
    )
    grant_lifetime_s: int = Field(
        default=120, ge=1, le=3600, description="Life of a delegation grant that is asked for without one, seconds."
    )
    budget_accumulate: Literal["min", "sum"] = Field(
        default="min",
        description="How costs of parallel windows and of sub-agents count: min (the lowest branch counts, SPEC-004 §6.4, "
        "SPEC-012 §5.3) or sum (they add up, in the session and in every session above it).",
    )
    token_lifetime_s: int = Field(default=3600, ge=10, le=86_400, description="Life of a session token, seconds.")

    request_timeout_s: Seconds = Field(default=60, description="Deadline of a governed call without one, seconds.")
    upstream_timeout_s: Seconds = Field(default=45, description="Deadline of one provider call, seconds.")
    rpc_timeout_s: Seconds = Field(default=10, description="Deadline of one call between services, seconds.")
    dpe_timeout_s: Seconds = Field(default=30, description="Deadline of one analysis, seconds.")
    dpe_stage_timeout_s: Seconds = Field(
        default=10,
        description="CPU time that one stage of an analysis may use for its text, seconds; more is refused with "
        "STAGE_DEADLINE_EXCEEDED.",
    )
    head_timeout_s: Seconds = Field(
        default=20,
        description="Time for the head of an HTTP request, from the connection or from its first byte, seconds.",
    )
    drain_s: Seconds = Field(default=10, description="Time for calls in flight after a stop signal, seconds.")
    max_in_flight: int = Field(
        default=256,
        ge=1,
        le=100_000,
        description="Governed calls at once in one sidecar; more are refused with OVERLOADED.",
    )
    max_body_bytes: int = Field(default=4_194_304, ge=1024, description="Largest request body or message, bytes.")
    max_text_bytes: int = Field(default=1_048_576, ge=1024, description="Largest text that is analysed, bytes.")
    max_json_depth: int = Field(default=64, ge=4, le=512, description="Deepest nesting of a JSON body.")
    max_facts: int = Field(default=512, ge=1, description="Facts of one envelope; more are refused, never dropped.")
    max_claims: int = Field(default=512, ge=1, description="Claims of one answer; more are refused, never skipped.")
    max_choices: int = Field(default=8, ge=1, le=128, description="Largest n of a request.")
    max_prior_bytes: int = Field(
        default=4_194_304,
        ge=1024,
        description="Earlier answers of a session that one analysis compares with, bytes together; more are refused.",
    )
    max_prior_windows: int = Field(
        default=256, ge=1, le=10_000, description="Earlier windows that one analysis compares with; more are refused."
    )
    context_tokens: int = Field(
        default=16_384,
        ge=256,
        le=10_000_000,
        description="Tokens of context that a window may be given from earlier ones where its request names no token_budget; "
        "three UTF-8 bytes count as one token.",
    )
    batch_parallel: int = Field(
        default=4, ge=1, le=1000, description="Items of one batch that are governed at the same time."
    )
    ai_domain: str = Field(
        default="",
        description="Registered domain of the AI system (SPEC-005 §14.2), such as employment, education, general or "
        "creative. Absent: the system is unregistered and classified as general information.",
    )

    remediation: Literal["full", "none"] = Field(
        default="full",
        description="Whether an answer is asked for again where that may lead to a better one (SPEC-005 §19): full (at most "
        "two re-dispatches, one continuation and one bridge per window) or none, deciding about every answer as it came.",
    )
    dpe_attribution: Literal["nli", "cosine"] = Field(
        default="nli",
        description="How claims are attributed: nli (embeddings propose, NLI and values decide) or cosine, the plain "
        "reading of SPEC-005 §4.3.",
    )
    dpe_threads: int = Field(default=2, ge=1, le=64, description="Threads of the embedded models.")
    nli_model_dir: Path | None = Field(
        default=None, description="Folder of a three-class ONNX NLI model with manifest.json. Absent: the bundled one."
    )
    embed_model_dir: Path | None = Field(
        default=None,
        description="Folder of an ONNX embedding model, 384 wide, with manifest.json. Absent: the bundled one.",
    )
    ner_model_dir: Path | None = Field(
        default=None,
        description="Folder of an ONNX token classifier for names, with manifest.json. Absent: the bundled one.",
    )
    triton_url: str = Field(
        default="",
        description="NVIDIA Triton Inference Server that runs the models, HOST:PORT of its gRPC, or grpcs://HOST:PORT for "
        "TLS. Absent: the models run in the dpe process.",
    )
    triton_ca_file: Path | None = Field(
        default=None,
        description="PEM file of the authorities that Triton's certificate is checked by. Absent: gRPC's own.",
    )
    triton_timeout_s: Seconds = Field(
        default=10, description="Deadline of one request to Triton, seconds; never beyond that of the analysis."
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least level logged.")
    otlp_endpoint: str = Field(default="", description="OTLP gRPC endpoint for traces. Absent: traces stay in process.")

    @property
    def max_message_bytes(self) -> int:
        """Largest message between services: a report quotes facts and claims, so it may exceed the body behind it."""
        return self.max_body_bytes * 4

    @field_validator("data_region")
    @classmethod
    def _two_letters(cls, value: str) -> str:
        if not re.fullmatch(r"(?:[A-Z]{2})?", value, re.ASCII):
            raise ValueError("must be two capital letters, such as EU, or empty")
        return value

    @field_validator("upstream_base_url", "public_base_url", "oversight_base_url", "otlp_endpoint")
    @classmethod
    def _http_url(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^\s/]+\S*", value):
            raise ValueError("must be a URL that starts with http:// or https://")
        return value

    @field_validator("session_address", "policy_address", "dpe_address", "audit_address", "oversight_address")
    @classmethod
    def _host_and_port(cls, value: str) -> str:
        if not re.fullmatch(r"\S+:\d{1,5}", value):
            raise ValueError("must be HOST:PORT")
        return value

    @field_validator("ai_domain")
    @classmethod
    def _known_domain(cls, value: str) -> str:
        canonical = canonical_domain(value)
        if canonical is None:
            raise ValueError(f"must be one of {', '.join(DOMAINS)}, or empty")
        return canonical

    @field_validator("triton_url")
    @classmethod
    def _triton_host_and_port(cls, value: str) -> str:
        if value and not re.fullmatch(r"(?:grpcs://)?[^\s/:]+:\d{1,5}|(?:grpcs://)?\[[0-9a-fA-F:]+\]:\d{1,5}", value):
            raise ValueError("must be HOST:PORT or grpcs://HOST:PORT")
        return value

    @field_validator("audit_url")
    @classmethod
    def _known_audit_scheme(cls, value: str) -> str:
        if value and not value.startswith(("sqlite:///", "postgresql://", "postgres://")):
            raise ValueError("must start with sqlite:/// or postgresql://")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment over the YAML file named by INTERLOCK_CONFIG_FILE over defaults."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls)


def load(config_file: Path | None = None) -> Settings:
    """Return the settings from the environment over *config_file*, else INTERLOCK_CONFIG_FILE, over defaults.

    Refused with CONFIG_FILE_UNREADABLE or SETTINGS_INVALID; the message names each field, its range and never its value.
    """
    if config_file is None and os.environ.get(CONFIG_FILE):
        config_file = Path(os.environ[CONFIG_FILE])
    try:
        return Settings() if config_file is None else _from_file(config_file)
    except ValidationError as error:
        problems = [_problem(e["loc"], e["type"], e["msg"]) for e in error.errors(include_input=False)]
    except SettingsError as error:  # a variable of a complex type that is not JSON
        problems = [str(error)]
    raise invalid("SETTINGS_INVALID", "; ".join(problems), hint=_HINT)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the INTERLOCK_* variables that no setting has: a typing error would be passed over in silence."""
    known = {f"INTERLOCK_{name.upper()}" for name in Settings.model_fields} | {CONFIG_FILE, failpoints.VARIABLE}
    return sorted(name for name in environment if name.upper().startswith("INTERLOCK_") and name.upper() not in known)


def without_password(url: str) -> str:
    """Return *url* as it may be shown."""
    shown = re.sub(r"(?<=://)[^/@\s]*@", "***@", url)
    return re.sub(r"(?i)(?<=[?&])((?:ssl)?password)=[^&\s]*", r"\1=***", shown)


def _from_file(config_file: Path) -> Settings:
    try:
        found = yaml.safe_load(config_file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise invalid(
            "CONFIG_FILE_UNREADABLE", f"{config_file}: {type(error).__name__}{where}", hint="give a readable YAML file"
        ) from None
    if not isinstance(found, dict | None):
        raise invalid("CONFIG_FILE_UNREADABLE", f"{config_file} is not a mapping of setting to value", hint=_HINT)

    class FromFile(Settings):
        model_config = SettingsConfigDict(yaml_file=config_file)

    return FromFile()


def _problem(location: tuple[int | str, ...], kind: str, message: str) -> str:
    """Return what is wrong with one setting, without its value: it could be a key."""
    name = ".".join(map(str, location))
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, Settings.model_fields, n=1)
        return f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else "")
    problem = f"{name} {_range(name) or message.removeprefix('Value error, ')}"
    if os.environ.get(f"INTERLOCK_{name.upper()}", "").startswith("tcp://"):
        problem += " (Kubernetes sets it for a Service called interlock-*: set enableServiceLinks to false)"
    return problem


def _range(name: str) -> str:
    """Return the range of a numeric setting as a sentence's end: people need both ends, not the one they crossed."""
    field = Settings.model_fields.get(name)
    bounds = {
        bound: value
        for constraint in (field.metadata if field else ())
        for bound in ("ge", "gt", "le")
        if (value := getattr(constraint, bound, None)) is not None
    }
    if not bounds:
        return ""
    number = "{:.2f}".format if name.startswith("decrement_") else "{:g}".format
    least = f"above {number(bounds['gt'])}" if "gt" in bounds else f"from {number(bounds['ge'])}"
    most = f" to {number(bounds['le'])}" if "le" in bounds else " up"
    return f"must be a number {least}{most}"
