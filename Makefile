# For people who work on CES. `make demo` and `make test` do all that they need by themselves.
#
#   make demo                  a training job on emulated edge hosts (RUNTIME=docker: workers as containers)
#   make test                  every test; CES_REQUIRE=engine,root,postgres,torch turns skips for want of those into failures
#   make install-train         adds torch; TORCH_INDEX=URL names a package index with other builds of it
#   make soak ROUNDS=10        the tests that kill things, over and over, until one fails
#   make lint images clean
#   make docs                  writes the generated parts of the documentation anew

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install install-train demo test soak lint docs images clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
comma := ,
# Twice quiet: errors only.
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

# Training's own code is there for checks and for `ces train` to say what it lacks; torch and the rest come later.
TRAIN := $(wildcard libs/ces_train)
PROJECTS := $(sort $(filter-out libs/ces_train,$(patsubst %/pyproject.toml,%,\
	$(wildcard libs/*/pyproject.toml services/*/pyproject.toml workloads/pyproject.toml))))
MANIFESTS := $(wildcard libs/*/pyproject.toml services/*/pyproject.toml workloads/pyproject.toml)
SOURCES := $(wildcard libs/*/src services/*/src workloads/src)
EDITABLE := $(foreach project,$(PROJECTS),-e ./$(project)$(if $(findstring ces_core,$(project)),[fast$(comma)policy]))
BUILD_TOOLS := hatchling editables setuptools
DEV_TOOLS := pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis testcontainers pgserver \
	ruff mypy import-linter types-PyYAML

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

install: $(VENV)/.installed

# The stamp is newer than everything that says what to install.
$(VENV)/.installed: $(MANIFESTS) constraints.txt Makefile
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not installed: install Python 3.11 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: CES needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) -V 2>&1);" \
			"name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "error: $(PYTHON) cannot make virtual environments: install python3-venv" >&2; exit 1; }
	@echo "[1/4] virtual environment $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "[2/4] tools for building, testing and checking"
	@$(PIP) install -c constraints.txt $(BUILD_TOOLS) $(DEV_TOOLS)
	@echo "[3/4] CES's packages and what they need"
	@$(PIP) install -c constraints.txt --no-build-isolation $(EDITABLE)
	@$(if $(TRAIN),$(PIP) install --no-deps --no-build-isolation -e ./$(TRAIN))
	@echo "[4/4] compiling the solver, about a minute: kept until its code changes"
	@$(BIN)/python -m ces_core.solvers.warm
	@touch $@
	@echo "installed; the command is $(BIN)/ces"

install-train: $(VENV)/.installed-train

$(VENV)/.installed-train: $(VENV)/.installed
	@echo "torch, and what training needs"
	@$(PIP) install $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c constraints.txt --no-build-isolation \
		"$$(grep '^torch==' constraints.txt)" $(if $(TRAIN),-e ./$(TRAIN))
	@touch $@

demo: install
	@exec $(BIN)/ces demo

test: $(if $(findstring torch,$(CES_REQUIRE)),install-train,install)
	$(BIN)/pytest $(PYTEST_FLAGS)

# A fault that shows once in ten times is a fault.
ROUNDS ?= 10
SOAK := tests/e2e/test_killed_services.py tests/e2e/test_killed_points.py tests/e2e/test_killed_postgres.py \
	tests/e2e/test_lost_broker.py tests/e2e/test_partition.py tests/e2e/test_worker_restarts.py
soak: install
	@for round in $$(seq $(ROUNDS)); do echo "round $$round of $(ROUNDS)"; $(BIN)/pytest -q $(SOAK); done

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

docs: install
	$(BIN)/python docs/generate.py

# One image for each Dockerfile: ces-manager, ces-edge-agent, ..., ces-worker-train and ces-holder. Where packages come
# through a proxy or a local index, build-args.sh adds what the build needs to reach them.
images:
	@command -v docker >/dev/null || { echo "error: no docker command: install a container engine" >&2; exit 1; }
	@flags="$$(deploy/airgap/build-args.sh)"; \
	log="$$(mktemp)"; trap 'rm -f "$$log"' EXIT; \
	build() { echo "building $$2"; docker build $$flags -f "$$1" -t "$$2" . >"$$log" 2>&1 || { cat "$$log" >&2; exit 1; }; }; \
	build workloads/Dockerfile ces-worker-train; \
	build deploy/holder/Dockerfile ces-holder; \
	for file in services/*/Dockerfile; do build "$$file" "ces-$$(basename "$$(dirname "$$file")")"; done

clean:
	rm -rf $(VENV) build dist bench-results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +
