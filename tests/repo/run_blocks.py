"""Every block of README.md, CONTRIBUTING.md and docs/*.md: who runs it, or why nobody can.

``ALONE`` and ``MESH`` are run by ``test_doc_blocks.py`` here and ``tests/e2e/test_doc_blocks.py``. A new block belongs into one of the three.
"""

from __future__ import annotations

from collections.abc import Mapping

BY_LINE = (
    "README.md: interlock check",
    "docs/kernel.md: interlock kernel describe team",
    "docs/models.md: interlock models list",
    "docs/oversight.md: interlock oversight list --key reviewer.key",
    "docs/security-operations.md: $ interlock keys certificates --out certificates --days 30",
)
"""Blocks that list commands, each for itself."""

ALONE: Mapping[str, int] = {
    "README.md: interlock check": 0,
    'README.md: interlock policy parse "halt-on CRITICAL; warn-on HIGH"': 0,
    'README.md: interlock policy compare "halt-on HIGH" "halt-on CRITICAL"': 1,
    'README.md: interlock policy lint "halt-on HIGH; warn-on CRITICAL"': 1,
    "README.md: interlock init": 0,
    "README.md: interlock models list": 0,
    "README.md: interlock conformance report": 0,
    "README.md: interlock config show --changed": 0,
    "README.md: interlock agents check agents.yaml": 0,
    'docs/policies.md: interlock policy lint "halt-on CRITICAL; warn-on HIGH; require-grounding 0.75"': 0,
    'docs/policies.md: interlock policy diff "halt-on CRITICAL" "halt-on HIGH; block-pii"': 0,
    "docs/policies.md: cat > policy-cases.yaml <<'CASES'": 0,
    "docs/models.md: interlock models list": 0,
    "docs/models.md: interlock models verify": 0,
    "docs/oversight.md: interlock oversight keygen reviewer@company.com --out reviewer.key": 0,
    "docs/oversight.md: from interlock.client import Answer, SafetyHalt, Session": 0,
    "docs/webhooks.md: import json": 0,
    "docs/profiles.md: $ interlock config show --profile regulated": 2,
    "docs/security-operations.md: $ interlock keys certificates --out certificates --days 30": 0,
    "docs/security-operations.md: $ export INTERLOCK_MASTER_KEYS_FILE=master-keys.yaml": 0,
}
"""Blocks that need no mesh, with the exit code that the page names or implies."""

MESH: frozenset[str] = frozenset({
    "README.md: .venv/bin/interlock run --profile enforce -- python agent.py",
    "README.md: .venv/bin/interlock serve --upstream https://api.openai.com/v1",
    "README.md: from openai import OpenAI, APIStatusError",
    "README.md: curl -i http://127.0.0.1:7070/v1/chat/completions",
    "README.md: from grpc_requests import Client",
    'README.md: interlock policy simulate "halt-on HIGH" --last 24h',
    "README.md: interlock dpe analyze answer.json",
    "README.md: interlock top",
    "README.md: interlock session list",
    "README.md: interlock session show crp_sess_ID",
    "README.md: interlock session dag crp_sess_ID --tree",
    "README.md: interlock audit verify crp_sess_ID",
    "README.md: interlock audit export crp_sess_ID",
    "README.md: interlock audit bundle --out DIR",
    "README.md: interlock audit verify --offline DIR --public-key log.pub",
    "README.md: interlock audit stream status",
    "README.md: interlock oversight list --key reviewer.key",
    "README.md: interlock kernel describe NAME",
    "docs/audit.md: interlock audit bundle --out bundle",
    "docs/audit.md: interlock audit verify --offline bundle --anchor anchor --public-key log.pub",
    """docs/audit.md: sed -i '4s/"severity":2/"severity":1/' bundle/entries.ndjson""",
    "docs/audit.md: interlock audit prove --session crp_sess_0123456789abcdef0123456789abcdef --sequence 4 --public-key log.pub -o json > proof.json",
    "docs/audit.md: import hashlib, json, pathlib",
    "docs/console.md: interlock console",
    "docs/kernel.md: from interlock.client.kernel import SafetyKernel, Invariant, State, ActionSpec, Effect",
    "docs/kernel.md: interlock kernel describe team",
    "docs/kernel.md: interlock kernel evaluate team task",
    "docs/kernel.md: interlock kernel execute team task --key order-17",
    "docs/kernel.md: interlock kernel permits team",
    "docs/kernel.md: interlock kernel emergencies",
    'docs/kernel.md: interlock kernel simulate team --limit budget=50 --invariant "few=active_tasks <= 3"',
    "docs/kernel.md: with kernel.lease(wanted=5.0, lifetime_s=30.0) as lease:",
    "docs/kernel.md: from interlock.client.kernel import ActionSpec, Effect, Invariant, SafetyKernel, State",
    'docs/kernel.md: UNBOOK = ActionSpec("unbook", "Unbook", effects=(Effect("booked", "decrement", 1),))',
    'docs/policies.md: interlock policy simulate "halt-on HIGH" --last 24h',
    "docs/oversight.md: interlock oversight list --key reviewer.key",
    "docs/trees.md: from interlock.client import Session",
})  # fmt: skip
"""Blocks that are run beside a mesh on embedded parts, in the order of the test that runs them."""

_SUITES = "it is a suite of this repository, and runs this test"
_INSTALLS = "it installs into .venv first; what it starts then is run by tests/e2e"

LISTED: Mapping[str, str] = {
    "README.md: make demo": f"{_INSTALLS}/test_demo.py",
    "README.md: uvx --from '.[demo]' interlock demo": "it wants uv and a network; tests/repo/test_wheel.py installs the wheel, and tests/e2e/test_demo.py runs its demonstration",
    "README.md: make demo-tree": f"{_INSTALLS}/test_demo_tree.py",
    "README.md: make test-quick": _SUITES,
    "CONTRIBUTING.md: make test-quick": _SUITES,
    "README.md: interlock console --open": "it opens a browser; without --open it is run from docs/console.md",
    "README.md: interlock dpe calibrate labelled.jsonl": "it wants sixty labelled answers of the reader's own; tests/unit/cli/test_dpe_calibrate.py runs it",
    "README.md: interlock session watch crp_sess_ID": "it follows until the session ends; tests/wire/cli/test_top_wire.py runs it",
    "README.md: interlock models serve": "it runs until it is stopped; tests/e2e/test_models_serve.py runs it",
    "README.md: interlock mcp --map tools.yaml -- COMMAND": "COMMAND is the reader's tool server; tests/e2e/test_mcp_stdio.py runs it",
    "README.md: interlock decision certify -- COMMAND": "COMMAND is the reader's agent; tests/wire/decision runs it",
    "README.md: interlock oversight approve-delegation --session ID ...": "the dots stand for more; tests/wire/cli/test_reviewers_cli_wire.py runs its commands",
    "README.md: interlock audit erase crp_sess_ID --approval ...": "it takes a reviewer's signed token; tests/wire/cli/test_audit_erase_cli_wire.py runs it",
    "README.md: interlock keys new|rotate|list|check|certificates": "the bars stand for five commands; docs/security-operations.md has them in a block that is run",
    "docs/audit.md: interlock oversight approve-truncation 6 --key reviewer.key": "it takes a log that lost its end; tests/wire/cli/test_audit_proofs_cli_wire.py runs both commands",
    "docs/calibration.md: interlock dpe calibrate labelled.jsonl": "it wants sixty labelled answers of the reader's own; tests/unit/cli/test_dpe_calibrate.py runs it",
    "docs/console.md: interlock serve": "it runs until it is stopped; the README's block with it is run",
    "docs/decision.md: export OPENAI_API_KEY=key-of-the-owner": "it takes an experiment with seven cycles; tests/wire/cli/test_decision_cli_wire.py runs its commands",
    "docs/decision.md: from interlock.client.decision import ActionRisk, AgentAuthority, AgentDescriptor, DecisionProposal, run": "it takes a ticket to an experiment; tests/wire/decision runs agents of this form",
    "docs/decision.md: interlock decision certify --descriptor me.json --certificate me.cert -- node agent.mjs": "agent.mjs is the reader's; tests/wire/decision certifies agents in three languages",
    'docs/decision.md: callback = OptunaCallback("search", trials=40, most=60)': "objective is the reader's training; tests/e2e/test_demo_decide.py runs a study",
    "docs/envoy.md: interlock keys certificates --out /etc/interlock": "it writes to /etc and runs Envoy until it is stopped; tests/wire/envoy runs the configuration",
    "docs/kernel.md: interlock kernel watch team --after 10": "it follows until it is stopped; tests/e2e/test_kernel_processes.py runs it",
    "docs/kernel.md: interlock mcp --map tools.yaml -- npx some-tool-server": "npx fetches a tool server of the reader's; tests/e2e/test_mcp_stdio.py and test_mcp_http.py run both",
    "docs/litellm.md: export INTERLOCK_LITELLM_KEY=$(openssl rand -hex 32)": "it runs a mesh and LiteLLM's proxy until they are stopped; `make litellm` does",
    "docs/models.md: interlock models pull https://HOST/nli/manifest.json --sha256 HEX --slot nli --dir models/nli": "HOST and HEX are the reader's; tests/unit/cli/test_models_cli.py runs it",
    "docs/models.md: python -m venv .venv-train && . .venv-train/bin/activate": "it trains for hours; `make train-smoke` runs the way",
    "docs/models.md: python scripts/base_weights.py --out build/mpnet --teacher": "it trains on a GPU, on data that is not here",
    "docs/models.md: python scripts/train_ner.py --data DATA --base build/base --out build/ner-slot --held build/ner-held": "it trains for twenty minutes on data that is not here",
    "docs/oversight.md: interlock oversight show crp_win_00000000000000000000000000000000 --key reviewer.key": "it takes a held answer; tests/e2e/test_oversight_release.py runs it",
    "docs/oversight.md: interlock oversight approve crp_win_00000000000000000000000000000000 --key reviewer.key --reason SOURCES_CHECKED": "it takes a held answer; tests/e2e/test_oversight_release.py runs it",
    "docs/oversight.md: interlock oversight reject crp_win_00000000000000000000000000000000 --key reviewer.key --reason INACCURATE": "it takes a held answer; tests/e2e/test_oversight_release.py runs it",
    "docs/oversight.md: interlock oversight stuck list --key reviewer.key": "it takes a step that is stuck; tests/wire/oversight/test_stuck_wire.py runs it",
    "docs/oversight.md: interlock oversight reviewers list": "the key of the example is nobody's; tests/wire/cli/test_reviewers_cli_wire.py runs the commands",
    "docs/postgresql.md: export INTERLOCK_AUDIT_URL=postgresql://interlock_service:…@db/interlock": "it takes a server with two roles; tests/contract runs the migration on a real one",
    "docs/reliability.md: make fault": _SUITES,
    "docs/security.md: make fuzz": _SUITES,
    "docs/security.md: make mutation": _SUITES,
    "docs/security-operations.md: $ export INTERLOCK_TLS_CA_FILE=certificates/ca.pem": "it is for the two commands after it",
    "docs/security-operations.md: $ INTERLOCK_TLS_CERT_FILE=certificates/session.pem INTERLOCK_TLS_KEY_FILE=certificates/session.key interlock serve session": "it runs until it is stopped; tests/e2e/test_tls_processes.py runs a mesh with certificates",
    "docs/security-operations.md: $ INTERLOCK_TLS_CERT_FILE=certificates/operator.pem INTERLOCK_TLS_KEY_FILE=certificates/operator.key interlock check": "it asks that mesh; tests/e2e/test_tls_processes.py does",
}
"""Blocks that cannot run as they are written, each with the reason, and what runs it all the same."""
