# For people who work on CES. `make demo` and `make test` do all that they need by themselves.
#
#   make demo                  a training job on emulated edge hosts (RUNTIME=docker: workers as containers)
#   make test                  every test; CES_REQUIRE=engine,root,postgres,torch turns skips for want of those into failures
#   make unit                  the tests that need neither broker nor cluster, in some minutes
#   make install-train         adds torch; TORCH_INDEX=URL names a package index with other builds of it
#   make bench-check BASE=COMMIT  whether control plane, placement or network became slower since that commit, in pairs of runs
#   make histories             ten thousand random histories; HISTORIES says how many, SEED which
#   make soak ROUNDS=10        ten thousand random histories, services away for ten minutes, and the tests that kill things,
#                              over and over, until one fails
#   make unchanged BASE=COMMIT whether every answer is the same, bit for bit, as at that commit; needs torch for training
#   make lint images clean
#   make locks                 write again what each service needs, with the hashes of all files
#   make sbom                  what each service installs, as CycloneDX; make advisories: known faults in it
#   make docs                  writes the generated parts of the documentation

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install install-train demo unit test compiled unchanged bench-check histories soak lint locks sbom advisories docs images clean

PYTHON ?= python3
# Compiled modules are kept, whatever the environment says: each test cluster starts a dozen processes.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin
comma := ,
# Twice quiet: errors only.
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

TORCH_TOO := $(findstring torch,$(CES_REQUIRE))
# Training's own code is there for checks and for `ces train` to say what it lacks; torch and the rest come later.
TRAIN := $(wildcard libs/ces_rl)
PROJECTS := $(sort $(filter-out libs/ces_rl,$(patsubst %/pyproject.toml,%,\
	$(wildcard libs/*/pyproject.toml services/*/pyproject.toml workloads/pyproject.toml experiments/pyproject.toml))))
MANIFESTS := $(wildcard libs/*/pyproject.toml services/*/pyproject.toml workloads/pyproject.toml experiments/pyproject.toml)
SOURCES := $(wildcard libs/*/src services/*/src workloads/src experiments/src)
# With the extras that others of them ask for: pip finds no second set of extras of what it installs from a folder.
EDITABLE := $(foreach project,$(PROJECTS),-e ./$(project)$(if $(findstring ces_core,$(project)),[fast$(comma)policy])$(if $(findstring federation,$(project)),[policy]))
BUILD_TOOLS := hatchling editables setuptools
DEV_TOOLS := pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis schemathesis testcontainers pgserver \
	canaille[oidc] opentelemetry-exporter-otlp-proto-http playwright axe-playwright-python nbclient ipykernel pymetis ruff mypy import-linter types-PyYAML bandit cyclonedx-bom

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

install: $(VENV)/.installed

# Each stamp is newer than everything that says what to install. `make demo` needs no tools for tests and checks.
$(VENV)/.runs: $(MANIFESTS) constraints.txt Makefile
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not installed: install Python 3.11 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: CES needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) -V 2>&1);" \
			"name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "error: $(PYTHON) cannot make virtual environments: install python3-venv" >&2; exit 1; }
	@echo "virtual environment $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "CES's packages and what they need"
	@$(PIP) install -c constraints.txt $(BUILD_TOOLS)
	@$(PIP) install -c constraints.txt --no-build-isolation $(EDITABLE)
	@$(if $(TRAIN),$(PIP) install --no-deps --no-build-isolation -e ./$(TRAIN))
	@touch $@

$(VENV)/.solver: $(VENV)/.runs
	@echo "compiling the solver, two to four minutes: kept until its code changes"
	@$(BIN)/python -m ces_scheduler.warm_up
	@touch $@

$(VENV)/.tools: $(VENV)/.runs
	@echo "tools for testing and checking"
	@$(PIP) install -c constraints.txt $(DEV_TOOLS)
	@touch $@

$(VENV)/.installed: $(VENV)/.runs
	@$(MAKE) --no-print-directory -j2 $(VENV)/.solver $(VENV)/.tools $(if $(TORCH_TOO),$(VENV)/.torch)
	@touch $@
	@echo "installed; the command is $(BIN)/ces"

install-train: $(VENV)/.installed-train

# After the tools, since pip is not made for two at a time.
$(VENV)/.torch: $(VENV)/.tools
	@echo "torch, and what training needs"
	@$(PIP) install $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c constraints.txt --no-build-isolation \
		"$$(grep '^torch==' constraints.txt)" $(if $(TRAIN),-e "./$(TRAIN)[tensorboard]")
	@touch $@

$(VENV)/.installed-train: $(VENV)/.installed
	@$(MAKE) --no-print-directory $(VENV)/.torch
	@touch $@

demo: $(VENV)/.solver
	@exec $(BIN)/ces demo

# Several workers share the tests out; tests/support/worker_groups.py says which of them stay together. Many tests of the
# whole suite wait, for leases and for each other's processes, so that there are three workers to two cores; with more,
# the clusters that they keep take the time from each other.
CORES := $(shell getconf _NPROCESSORS_ONLN)
ENOUGH := $(if $(TORCH_TOO),install-train,install)
unexport PYTHONDONTWRITEBYTECODE # thousands of processes read the same modules

unit: $(ENOUGH) compiled
	$(BIN)/pytest -n $(CORES) $(PYTEST_FLAGS) tests/unit

# Tests that measure come last, one after the other; 5 says that none was asked for.
test: $(ENOUGH) compiled
	@status=0; \
	$(BIN)/pytest -n $$(($(CORES) + ($(CORES) + 1) / 2)) -m "not alone and not soak" $(PYTEST_FLAGS) || status=$$?; \
	$(BIN)/pytest -m "alone and not soak" $(PYTEST_FLAGS) || test $$? = 5 || status=1; \
	exit $$status

# What most tests need compiled, once: otherwise each of their workers would compile it.
COMPILED := search exact imitation
TRAINED := placement thesis team
compiled: $(VENV)/.compiled

$(VENV)/.compiled: $(VENV)/.installed $(shell find libs/ces_core/src libs/ces_rl/src -name '*.py')
	@echo "compiling the solvers $(COMPILED), and training of $(TRAINED): kept until their code changes"
	@{ printf 'tests/support/compile_training.py %s\n' $(TRAINED); printf -- '-m ces_scheduler.warm_up %s\n' $(COMPILED); } | \
		xargs -P $(CORES) -L 1 $(BIN)/python
	@touch $@

# Its own recorder records what that commit answers; build/equivalence keeps that for the next time.
unchanged: install
	@test -n "$(BASE)" || { echo "error: name the commit to compare with: make unchanged BASE=main" >&2; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m equivalence compare $(BASE) $(COMPARE_FLAGS)

# Ratios of runs in turn, since machines are shared. build/bench-check keeps the commit, installed, and all results.
bench-check: install
	@test -n "$(BASE)" || { echo "error: name the commit to compare with: make bench-check BASE=main" >&2; exit 2; }
	PYTHONPATH=tests $(BIN)/python -m bench_check $(BASE) $(CHECK_FLAGS)

# The same SEED draws the same histories again. A dot stands for 25; where one fails, it says how to draw its 25 alone.
HISTORIES ?= 10000
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
histories: install
	@seed=$(SEED); echo "$(HISTORIES) random histories from SEED=$$seed"; \
	CES_HISTORIES=$(HISTORIES) CES_SEED=$$seed $(BIN)/pytest -q -n $(CORES) --timeout 0 tests/unit/test_at_most_once.py

# A fault that shows once in ten times is a fault. First come ten thousand random histories, and six clusters beside each
# other, each of which misses one of its services for ten minutes.
ROUNDS ?= 10
SOAK := tests/e2e/test_killed_services.py tests/e2e/test_killed_points.py tests/e2e/test_killed_postgres.py \
	tests/e2e/test_killed_resizes.py tests/e2e/test_node_scores.py tests/e2e/test_elastic_torch.py tests/e2e/test_lost_broker.py tests/e2e/test_partition.py tests/e2e/test_worker_restarts.py \
	tests/e2e/test_regions.py tests/e2e/test_split_jobs.py tests/e2e/test_compose_regions.py
soak: histories
	CES_OUTAGE_S=600 $(BIN)/pytest -q -n 6 tests/e2e/test_outages.py
	@for round in $$(seq $(ROUNDS)); do echo "round $$round of $(ROUNDS)"; $(BIN)/pytest -q $(SOAK); done

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/bandit -q -c pyproject.toml -r $(SOURCES)

# What each service and the command install, in dist/sbom; some minutes.
sbom: install
	@PYTHON=$(BIN)/python deploy/sbom.sh dist/sbom

# Writes the locks with hashes in deploy/locks; to be run after every change of constraints.txt or of what a service needs.
locks: install
	@$(PIP) install -c constraints.txt pip-tools
	@PYTHON=$(BIN)/python deploy/lock.sh deploy/locks

# Known faults in what is pinned. It asks the advisory database of PyPI, and fails where it gets no answer.
advisories: install
	@$(PIP) install -c constraints.txt pip-audit
	$(BIN)/pip-audit --strict --disable-pip --no-deps -r constraints.txt

docs: install
	$(BIN)/python docs/generate.py

# One image for each Dockerfile: ces-manager, ces-edge-agent, ..., ces-worker-train and ces-sandbox. Where packages come
# through a proxy or a local index, build-args.sh adds what the build needs to reach them. Public images are those of the
# environment, else of .env (deploy/pin-images.sh), else those that the Dockerfiles name.
pinned = $(shell sed -n 's/^$(1)=//p' .env 2>/dev/null | tail -n 1)
CES_PYTHON_IMAGE ?= $(call pinned,CES_PYTHON_IMAGE)
CES_DEBIAN_IMAGE ?= $(call pinned,CES_DEBIAN_IMAGE)
images:
	@command -v docker >/dev/null || { echo "error: no docker command: install a container engine" >&2; exit 1; }
	@flags="$$(deploy/airgap/build-args.sh)"; \
	log="$$(mktemp)"; trap 'rm -f "$$log"' EXIT; \
	build() { \
		echo "building $$2$${3:+ on $$3}"; \
		docker build $$flags $${3:+--build-arg "BASE_IMAGE=$$3"} -f "$$1" -t "$$2" . >"$$log" 2>&1 || { cat "$$log" >&2; exit 1; }; \
	}; \
	build workloads/Dockerfile ces-worker-train "$(CES_PYTHON_IMAGE)"; \
	build deploy/sandbox/Dockerfile ces-sandbox "$(CES_DEBIAN_IMAGE)"; \
	for file in services/*/Dockerfile; do build "$$file" "ces-$$(basename "$$(dirname "$$file")")" "$(CES_PYTHON_IMAGE)"; done

clean:
	rm -rf $(VENV) build dist bench-results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +
