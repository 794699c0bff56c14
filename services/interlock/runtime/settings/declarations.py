"""Every setting of Interlock, in one place and grouped by subject: one flat model, since variables and YAML keys are flat too.

docs/configuration.md is generated from this file, with each ``# == Title`` as a heading. ``values.py`` checks single values, ``model.py`` several.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from interlock.runtime.settings.profile_files import DEFAULT, ProfileName
from interlock.runtime.settings.values import (
    AiDomain,
    AuditUrl,
    BindingRanks,
    FieldPaths,
    HeaderNames,
    HostNames,
    HttpUrl,
    LogName,
    Origins,
    Port,
    RedisUrl,
    Region,
    Remedies,
    Seconds,
    ServiceAddress,
    TritonAddress,
)


class SettingDeclarations(BaseSettings):
    """The settings of every Interlock process. Each description gives the effect, the unit and the meaning of absence."""

    model_config = SettingsConfigDict(  # deferred: of the classes that inherit from each other only the last is built
        env_prefix="INTERLOCK_", extra="forbid", frozen=True, use_attribute_docstrings=True, yaml_file_encoding="utf-8", defer_build=True,
    )  # fmt: skip

    # == Profile

    profile: ProfileName = DEFAULT
    """A word for the values of several settings (docs/profiles.md): observe (watch, stand in nobody's way), enforce or
    regulated. It gives a setting its value where nothing else does. `interlock config show` tells what came from it."""
    unaware_callers: Literal["observe", "enforce"] = "enforce"
    """What happens to answers to a caller that sends nothing of CRP: enforce (held, halted and remedied like any other) or observe (delivered as they
    came; what would have been done is counted, shown and on record). A caller that asks for protection by a token, a policy or a delegation is protected in both."""

    # == Model provider

    upstream_base_url: HttpUrl = ""
    """Base URL of the model provider, such as https://host/v1. Absent: UPSTREAM_NOT_CONFIGURED for all calls but Check."""
    upstream_api_key: SecretStr | None = None
    """Key that the sidecar presents to the provider. Absent: the caller's own bearer token is passed on."""
    upstream_api: Literal["chat", "messages", "responses"] = "chat"
    """API that the provider is asked by: chat (completions), messages (Anthropic's) or responses; callers speak any with each."""
    remedies: Remedies = ""
    """Remedies that an answer may get, by commas: redispatch (asked for again, SPEC-005 §19), continue (what was cut
    off, §10.3), stitch (a bridge from the answer before, §11.5). Empty: none but those that a policy names."""
    remediation: Literal["full", "none"] | None = None
    """Deprecated, use remedies, which goes first: full switches on every one, none forbids those that a policy names too."""
    stream_release: Literal["sentences", "whole"] = "whole"
    """How a streamed answer leaves: sentences (each once it was judged with what came before) or whole. Whole in any case where the breaker is not closed, or where a remedy, a review or the policy needs the whole."""
    max_provider_calls: int = Field(default=2, ge=1, le=100)
    """Provider calls that one answer may take: itself, its review and revision, remedies, summaries. 1: a reflexive
    answer, which a half-open breaker and strict mode force, is refused with PROVIDER_CALLS_EXCEEDED."""
    grounding_mode: Literal["auto", "context-strict", "context-preferred", "open"] = "auto"
    """Grounding mode of calls that name none (SPEC-002 §11.2). In the first two context modes facts that a caller gives
    are told to the model, in open they are evidence alone. auto: context-preferred where facts are given (but for work on a program), else open."""

    # == Servers and addresses

    host: str = "127.0.0.1"
    """Address that every server binds."""
    sidecar_http_port: Port = 7070
    """Port of the OpenAI HTTP front. 0: any free port."""
    sidecar_grpc_port: Port = 7071
    """Port of the sidecar's gRPC front. 0: any free port."""
    session_port: Port = 7081
    """Port of the session service where it is served by itself with certificates, or allow_plaintext. 0: any free port."""
    policy_port: Port = 7082
    """Port of the policy service where it is served by itself with certificates, or allow_plaintext. 0: any free port."""
    dpe_port: Port = 7083
    """Port of the dpe service where it is served by itself with certificates, or allow_plaintext. 0: any free port."""
    audit_port: Port = 7084
    """Port of the audit service where it is served by itself with certificates, or allow_plaintext. 0: any free port."""
    oversight_port: Port = 7085
    """Port of the oversight service where it is served by itself with certificates, or allow_plaintext. 0: any free port."""
    oversight_http_port: Port = 7075
    """Port of the reviewers' page. 0: any free port."""
    decision_port: Port = 7086
    """Port of the decision service, for the owners of experiments and their agents. 0: any free port."""
    envoy_port: int | None = Field(default=None, ge=0, le=65535)
    """Port that Envoy asks (docs/envoy.md), with certificates of the mesh or allow_plaintext. 0: any free port. Absent: none."""
    rate_limits_file: Path | None = None
    """YAML file that says which action of a kernel Envoy's rate limit descriptors are, read again when it changes. Absent: all are refused."""
    litellm_key: SecretStr | None = None
    """Key that LiteLLM presents to the guardrail on the HTTP front (docs/litellm.md), for no agent. Absent: no guardrail."""
    metrics_port: Port = 9464
    """Port of /metrics for services without HTTP. 0: any free port."""
    injector_port: Port = 7443
    """Port of the webhook that gives pods a sidecar, with the fronts' certificate. 0: any free port."""
    injector_file: Path | None = None
    """YAML file of the operator's rules for injected sidecars, read again when it changes. Absent: no injector."""
    session_address: ServiceAddress = ""
    """Where session is found: HOST:PORT, or unix:/PATH, where a session service also listens. Absent: a socket below
    state_dir that only its owner may open; with certificates or allow_plaintext, where none answers, its port here."""
    policy_address: ServiceAddress = ""
    """Where policy is found and, at unix:/PATH, listens. Absent: as for session_address."""
    dpe_address: ServiceAddress = ""
    """Where dpe is found and, at unix:/PATH, listens. Absent: as for session_address."""
    audit_address: ServiceAddress = ""
    """Where audit is found and, at unix:/PATH, listens. Absent: as for session_address."""
    oversight_address: ServiceAddress = ""
    """Where oversight is found and, at unix:/PATH, listens. Absent: as for session_address."""
    decision_address: ServiceAddress = ""
    """Where sidecars find the decision service. Absent: they refuse its calls with DECISION_ADDRESS_MISSING."""
    answers_without_echo: Literal["refuse", "accept"] = "refuse"
    """Answers of services from before the echo: refuse (ANSWER_WITHOUT_ECHO), or accept, counted, during an update."""
    metrics_access: Literal["local", "anyone", "nobody"] = "local"
    """Who is answered /metrics: local (a listener on loopback answers), anyone or nobody. Health always answers."""
    reflection_access: Literal["local", "anyone", "nobody"] = "local"
    """Which gRPC servers have reflection: local (on loopback, a socket, or for the mesh's operator), anyone or nobody."""
    public_base_url: HttpUrl = ""
    """Base of the report and audit trail URIs in response headers. Absent: the HTTP front's own address."""

    # == State and keys

    state_dir: Path = Path(".interlock")
    """Folder for embedded state and the generated master key."""
    master_key: SecretStr | None = None
    """Master key, 64 hex digits or more. Absent: one is made once below state_dir, readable by its owner only. All services of a mesh need the same one."""
    master_keys_file: Path | None = None
    """YAML file of master keys by version, made and rotated by `interlock keys`; all services of a mesh need the same
    ones. master_key, where it is set too, is version 1. Absent: the one master key."""
    api_keys_file: Path | None = None
    """YAML file of accepted API keys: a mapping of name to the key's SHA-256 in hex, or to a list of them. Read again
    when it changes. Absent: any bearer token is accepted, and its hash is the session's scope."""
    allow_unlisted_keys: bool = False
    """Whether a front that other machines reach may serve keys that no list names, where something before it checks them.
    Absent: it needs api_keys_file, or agents_file with require_registered_agents: API_KEYS_REQUIRED."""
    require_verified_code: bool = False
    """Whether a process whose code cannot be verified, such as a source checkout, refuses to start (CODE_UNVERIFIED)."""

    # == Certificates

    tls_cert_file: Path | None = None
    """PEM file of this process's certificate, which names it as spiffe://TRUST_DOMAIN/SERVICE, and of the authorities
    between it and those of tls_ca_file. With tls_key_file and tls_ca_file every gRPC port of the mesh is mutual TLS;
    one or two of the three refuse to start. Absent: plain text."""
    tls_key_file: Path | None = None
    """PEM file of the private key of tls_cert_file, which no one else may read."""
    tls_ca_file: Path | None = None
    """PEM file of the authorities that certificates of the mesh are checked by."""
    tls_trust_domain: str = Field(default="interlock", pattern=r"^[a-z0-9][a-z0-9._-]{0,254}$")
    """SPIFFE trust domain of the mesh; certificates of another one are no member of it."""
    allow_plaintext: bool = False
    """Whether ports may be plain text without certificates, where something else encrypts and identifies: those of the
    mesh, on loopback too, and fronts that other machines reach. Absent: refused with PLAINTEXT_REFUSED."""
    front_cert_file: Path | None = None
    """PEM file of the certificate of the fronts that agents and reviewers reach, HTTP and gRPC. Absent: plain text."""
    front_key_file: Path | None = None
    """PEM file of the private key of front_cert_file, which no one else may read."""

    # == Session store

    redis_url: RedisUrl = ""
    """Redis or Valkey that holds the sessions: redis://, rediss:// (TLS), unix://, or the master that Sentinel names,
    sentinel://HOST:PORT,HOST:PORT/MASTER (sentinels:// with TLS). Absent: an embedded Valkey below state_dir. memory://
    keeps sessions in this one process; after its end they are rebuilt from the audit log."""
    allow_unfit_store: bool = False
    """Whether a Redis or Valkey that evicts or has no append-only file may hold sessions: for development. Absent: such
    a store is not ready, and sessions on it are refused with SESSION_STORE_UNFIT."""
    redis_wait_replicas: int = Field(default=0, ge=0, le=10)
    """Replicas that must hold a settlement before it is answered (WAIT); with fewer the call is refused, and its charge stays. 0: none."""

    # == Budget, sessions and delegation

    decrement_low: float = Field(default=0.00, ge=0.00, le=0.05)
    """Cost of a LOW response."""
    decrement_medium: float = Field(default=0.05, ge=0.02, le=0.10)
    """Cost of a MEDIUM response."""
    decrement_high: float = Field(default=0.15, ge=0.10, le=0.25)
    """Cost of a HIGH response."""
    decrement_critical: float = Field(default=0.35, ge=0.25, le=0.50)
    """Cost of a CRITICAL response."""
    budget_accumulate: Literal["min", "sum"] = "min"
    """How costs of parallel windows and of sub-agents count: min (the lowest branch counts, SPEC-004 §6.4, SPEC-012
    §5.3) or sum (they add up, in the session and in every session above it)."""
    token_lifetime_s: int = Field(default=3600, ge=10, le=86_400)
    """Life of a session token, seconds."""
    max_windows: int = Field(default=200, ge=1, le=10_000)
    """Windows in a row that a session may have: turns of a conversation, or context windows of a long task."""
    max_loop_depth: int = Field(default=5, ge=0, le=100)
    """Levels of agents below the root."""
    max_fan_out: int = Field(default=10, ge=1, le=1000)
    """Children of one window."""
    max_dag_nodes: int = Field(default=800, ge=1, le=10_000)
    """Windows of one session."""
    max_delegations: int = Field(default=20, ge=0, le=1000)
    """Sub-agents that one session may start; an agent type may allow fewer."""
    max_roots_per_minute: int = Field(default=0, ge=0, le=1_000_000)
    """Root sessions that one key may begin in a minute, counted in the session store; more are refused with
    ROOT_SESSIONS_EXCEEDED, since every root has a full budget. Callers without a key count as one. 0: no bound."""
    grant_lifetime_s: int = Field(default=120, ge=1, le=3600)
    """Life of a delegation grant that is asked for without one, seconds."""

    # == Bindings

    bindings: BindingRanks = "hint,cookie,response,trace,body,conversation,caller"
    """What binds a call without a token to its session, separated by commas (docs/bindings.md). Without caller, a call that
    nothing names a session for is refused with SESSION_BINDING_REQUIRED instead of starting one."""
    binding_headers: HeaderNames = "x-session-id,x-litellm-session-id"
    """Request headers besides CRP-Context-Session-Id that name a session, separated by commas."""
    binding_fields: FieldPaths = "metadata.session_id,metadata.conversation_id,metadata.thread_id"
    """Fields of the request's body that name a session, separated by commas. user, safety_identifier and
    prompt_cache_key may be added where no two conversations share one value."""
    bindings_per_caller: int = Field(default=20_000, ge=16, le=1_000_000)
    """Names and answers by which sessions of one caller are found again, of each of two generations. When the current one is
    full, the older one is forgotten: what it named begins new sessions."""
    binding_ttl_s: int = Field(default=86_400, ge=60, le=2_592_000)
    """How long a name or an answer that nothing uses still finds its session, seconds, at least; twice as long at most. So do cookies."""
    binding_key: SecretStr | None = None
    """Key of the digests of names and turns, 64 hex digits or more, the same in every sidecar. Absent: one derived from the master key."""

    caller_budget: float = Field(default=0.0, ge=0.0, le=10_000.0)
    """Safety budget of one caller and period, above all of its sessions: starting anew is no way out. A caller is an API
    key; keys that no list, registry or provider verifies share one budget. At 0.10 of it nothing more of that caller is released until the period ends. 0: callers have none."""
    caller_period_s: int = Field(default=3600, ge=60, le=31_536_000)
    """How long the period of caller_budget lasts, seconds. Periods are counted from the epoch, by the session store's clock."""

    # == Policy and agents

    default_policy: str = ""
    """Safety policy of this deployment; every request's policy is joined with it."""
    user_words_ground: bool = True
    """Whether a claim that rests on the user's own words alone counts as grounded for require-grounding. The user's message is part of the context that an answer is made from. False: only sources count."""
    data_region: Region = ""
    """Jurisdiction in which this deployment processes and stores, two capital letters such as EU. A call that demands another is refused with DATA_RESIDENCY_VIOLATION. Absent: every call that demands one is refused."""
    tool_kernel: str = Field(default="", pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$")
    """Name of the kernels, of each caller and of its session tree, whose actions are its tools: an answer that calls one which any of them would reject is refused with KERNEL_ACTION_REFUSED. Empty: tool calls are not tried."""
    ai_domain: AiDomain = ""
    """Registered domain of the AI system (SPEC-005 §14.2), such as employment, education, general or creative. Absent:
    the system is unregistered and classified as general information."""
    refuse_persistent_deficiency: bool = False
    """Whether a session whose last two windows were of tier D is refused its next one (SPEC-004 §13.2). Absent: it is warned."""
    agents_file: Path | None = None
    """YAML file of registered agent types (SPEC-012 §7.1): keys as SHA-256, limits, strategies, policy. Read again when it changes; a bad one refuses to start, later it is told and the good one stays. Absent: none."""
    require_registered_agents: bool = False
    """Whether only callers whose key belongs to a registered agent type may make sessions. Needs agents_file."""
    agent_cache_s: Seconds = 3
    """How long a sidecar keeps the agent type of a key before it asks policy again, seconds. The effective policy of the same question is kept for as long, for one second at most."""

    # == Human oversight

    reviewers_file: Path | None = None
    """YAML file of reviewers, their Ed25519 public keys and console roles. Read again when it changes. Absent: no one can approve anything."""
    reviewers_by_rpc: bool = False
    """Whether RegisterReviewer may add reviewers besides those of reviewers_file, in memory. Only where mutual TLS says who calls: otherwise anyone who reaches the policy port could become a reviewer."""
    review_required: bool = False
    """Whether every answer of HIGH or CRITICAL risk waits for a person, whatever its policy says: each policy is joined with oversight human-review. Needs reviewers_file or reviewers_by_rpc. Absent: policies and the breaker decide."""
    hold_expires_s: int = Field(default=86_400, ge=1, le=2_592_000)
    """How long a response is held for a reviewer, seconds. Nobody has decided by then: it is denied and deleted."""
    oversight_base_url: HttpUrl = ""
    """Base URL of the reviewers' page as reviewers open it, such as https://review.example.com; requests for another host are refused. Absent: 127.0.0.1, localhost and [::1] with the page's own port."""
    oversight_view_s: int = Field(default=900, ge=60, le=28_800)
    """How long a reviewer stays signed in to look at the queue, seconds."""
    stuck_by_reviewers: bool = False
    """Whether what a kernel could not compensate is settled by reviewers alone: a caller's key gets KERNEL_REVIEWER_NEEDED. Absent: its own key settles it too, and the record names nobody."""
    console_link_role: Literal["viewer", "reviewer", "admin"] = "reviewer"
    """Role of whoever comes by the operator's link. A viewer sees figures, a reviewer content; an admin may stop sessions and kernels too."""

    # == Deadlines

    request_timeout_s: Seconds = 60
    """Deadline of a governed call without one, seconds. A client that takes nothing of its answer for so long is cut off."""
    upstream_timeout_s: Seconds = 45
    """Deadline of one provider call, seconds; of one whose answer leaves in parts, the time to its first byte and the longest pause between two."""
    stream_timeout_s: Seconds = 600
    """Longest time for which a provider may send an answer that leaves in parts, seconds. What left by then is settled, and the client gets UPSTREAM_TIMEOUT."""
    rpc_timeout_s: Seconds = 10
    """Deadline of one call between services, seconds."""
    dpe_timeout_s: Seconds = 50
    """Deadline of one analysis, seconds; never beyond that of its call. An answer of 400 claims takes half a minute beside others."""
    dpe_stage_timeout_s: Seconds = 10
    """CPU time that one stage of an analysis may use for its text, seconds; more is refused: STAGE_DEADLINE_EXCEEDED."""
    triton_timeout_s: Seconds = 10
    """Deadline of one request to Triton, seconds; never beyond that of the analysis."""
    head_timeout_s: Seconds = 20
    """Time for the head of an HTTP request, from the connection or from its first byte, seconds."""
    drain_s: Seconds = 10
    """Time for calls in flight after a stop signal, seconds."""

    # == Sizes and counts

    max_in_flight: int = Field(default=1024, ge=1, le=100_000)
    """Governed calls at once in one sidecar, for its memory; more are OVERLOADED, first for who has most of them, sooner where the models judge no more."""
    batch_parallel: int = Field(default=4, ge=1, le=1000)
    """Items of one batch that are governed at the same time."""
    max_body_bytes: int = Field(default=4_194_304, ge=1024)
    """Largest request body or message, bytes."""
    max_text_bytes: int = Field(default=1_048_576, ge=1024)
    """Largest text that is analysed, bytes."""
    max_json_depth: int = Field(default=64, ge=4, le=512)
    """Deepest nesting of a JSON body."""
    max_facts: int = Field(default=512, ge=1)
    """Facts of one envelope; more are refused, never dropped."""
    max_claims: int = Field(default=512, ge=1)
    """Claims of one answer; more are refused, never skipped."""
    max_choices: int = Field(default=8, ge=1, le=128)
    """Largest n of a request."""
    max_prior_bytes: int = Field(default=4_194_304, ge=1024)
    """Earlier answers of a session that one analysis compares with, bytes together; more are refused."""
    max_prior_windows: int = Field(default=256, ge=1, le=10_000)
    """Earlier windows that one analysis compares with; more are refused."""
    compared_windows: int = Field(default=8, ge=1, le=64)
    """Latest windows on the path that an answer is compared with; the cost of a call does not grow with the others."""
    context_tokens: int = Field(default=16_384, ge=256, le=10_000_000)
    """Tokens of context that a window may get from earlier ones without a token_budget; three UTF-8 bytes count as one."""
    model_context_tokens: int = Field(default=128_000, ge=1024, le=100_000_000)
    """Context window of the provider's model, tokens: CRP-Context-Saturation is measured against it (SPEC-003 §7.2)."""

    # == Analysis and its models

    dpe_attribution: Literal["nli", "cosine"] = "nli"
    """How claims are attributed: nli (embeddings propose, NLI and values decide) or cosine, as SPEC-005 §4.3 reads."""
    dpe_cannot_tell: Literal["free", "medium"] = "free"
    """What a statement costs that the sources neither show nor speak against: free (counted alone), or medium (prevents LOW)."""
    dpe_threads: int = Field(default=0, ge=0, le=64)
    """Threads of the embedded models. 0: one for each core that the process may use."""
    dpe_remembered_bytes: int = Field(default=134_217_728, ge=0, le=17_179_869_184)
    """Memory for what is read out of texts, bytes; what nothing asks for in ten minutes is forgotten. 0: each text is read anew."""
    nli_model_dir: Path | None = None
    """Folder of a three-class ONNX NLI model with manifest.json. Absent: the bundled one."""
    embed_model_dir: Path | None = None
    """Folder of an ONNX embedding model, 384 wide, with manifest.json. Absent: the bundled one."""
    ner_model_dir: Path | None = None
    """Folder of an ONNX token classifier for names, with manifest.json. Absent: the bundled one."""
    triton_url: TritonAddress = ""
    """Triton that runs the models, HOST:PORT of its gRPC, or grpcs://HOST:PORT. Absent: they run in the dpe process."""
    triton_ca_file: Path | None = None
    """PEM file of the authorities that Triton's certificate is checked by. Absent: gRPC's own."""

    # == Audit log

    audit_url: AuditUrl = ""
    """Database of the audit log, sqlite:///PATH or postgresql://ROLE@HOST/DATABASE. Absent: audit.db below state_dir."""
    audit_reread_windows: int = Field(default=32, ge=8, le=10_000)
    """Within so many of its windows every stored record of a session that is in use is read again and held against
    what was verified. What is new is verified at once, and the whole chain at first use."""
    audit_origin: LogName = "interlock.local/audit"
    """Name of the audit log in its signed checkpoints, such as example.com/audit: one for each log, never changed. Auditors are given it with the public key."""
    checkpoint_key_file: Path | None = None
    """PEM file of the Ed25519 private key that signs checkpoints of the audit log, which no one else may read. Absent:
    one is made once below state_dir; its public half lies next to it."""
    checkpoint_entries: int = Field(default=256, ge=1, le=1_000_000)
    """New entries of the audit log after which a checkpoint is signed."""
    checkpoint_s: float = Field(default=10, gt=0, le=3600)
    """Time after which a checkpoint is signed if there are new entries, seconds."""
    audit_anchor: Path | None = None
    """Folder in another place of trust, such as another owner's volume, that checkpoints and leaf hashes are published
    to. Absent: an auditor has the log's word alone that its end is not missing."""
    audit_anchor_required: bool = False
    """Whether nothing more is sealed, and so released, while more than audit_anchor_max_lag entries are not published:
    AUDIT_ANCHOR_LAG. Needs audit_anchor. Absent: it is measured and told only."""
    audit_anchor_max_lag: int = Field(default=10_000, ge=1, le=1_000_000_000)
    """Entries that may wait to be published, with audit_anchor_required."""
    kept_answers_days: int = Field(default=30, ge=0, le=3650)
    """Days that a Response is kept with what it answered, for requests that go on from it, unless store is false. 0: none."""
    retention_contents_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after a session's last event until its data key is destroyed: its chain then verifies as TRUNCATED. Absent: never."""
    retention_events_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after a session's last event after which its events are removed; a signed mark and the leaf hashes stay. The
    EU AI Act asks for six months at least of high-risk systems. Absent: never."""

    # == Webhooks and violation reports

    sinks_file: Path | None = None
    """YAML file of the webhooks that audit events are streamed to (docs/webhooks.md). Read again when it changes; a bad
    one refuses to start, later it is told and the good one stays. Absent: none."""
    report_uri_hosts: HostNames = ""
    """Exact hosts that a policy's report-uri may name, separated by commas. Absent: no report is delivered, and each is counted."""
    report_secret: SecretStr | None = None
    """Secret that reports are signed with, whsec_ and base64; two, with a space, during a change of it."""
    egress_allow: Origins = ""
    """Exact HOST:PORT entries, separated by commas, that webhooks and reports may reach although they are plain http,
    an address, a private or loopback address, or another port than 443 and 8443. For receivers of your own."""
    egress_ca_file: Path | None = None
    """PEM file of the authorities that receivers' certificates are checked by. Absent: this machine's."""

    # == Logs and traces

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level logged."""
    otlp_endpoint: HttpUrl = ""
    """OTLP gRPC endpoint for traces. Absent: that of OTEL_EXPORTER_OTLP_ENDPOINT, or none: traces stay in process."""
    gen_ai_conventions: bool = True
    """Whether provider calls have spans and metrics by OpenTelemetry's conventions for generative AI, which still change."""
