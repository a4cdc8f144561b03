# make demo    install, then show one protected session on a real browser
# make test    install, then run the tests
# make check   everything a change must pass: format, lint, types, import directions, tests, coverage
# make bench   measure; prints a table and writes build/bench.json
# make bench-disk  the audit log where a sync takes as long as on a real disk (strace): two minutes
# make large   the tests with large input and restless pages in full: some minutes
# make dlp     how much the inspector finds, on thousands of samples, with the whole catalogue: a minute
# make fuzz-host 10,000 malformed requests to the host control port: a minute
# make faults  every file system call of the audit log made to fail under strace, and 1,000 kills: 15 minutes
# make approval-orders  20,000 orders of answers, policy changes and ends of rights: some minutes
# make dashboards  write observability/dashboards from the table of metrics
# make test-backends  metrics and alert rules in Prometheus itself, spans in Phoenix: a minute, after some minutes of installing
# make limiter the limiter under 200 agents at twice its limit: five minutes
# make soak    an hour of calls, and whether memory, files, threads or tasks grow
# make properties  a million steps that change rights, with calls between and during them: half an hour
# make mutants remove one check at a time; the tests must notice each

SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
export PATH := $(abspath $(VENV))/bin:$(PATH)
PY := $(BIN)/python
WORKERS ?= auto
# Coverage of these rooms is demanded; the others are reported.
COVERED := broker/tabwarden/*

.PHONY: demo test check format lint types imports coverage bench bench-disk large dlp fuzz-host faults approval-orders dashboards test-backends limiter soak properties mutants vectors clean install dev chromium node keystores

$(VENV)/.installed: pyproject.toml
	@.ci/ensure python
	@test -x $(PY) || python3 -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@$(PY) -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

install: $(VENV)/.installed
dev: $(VENV)/.dev

chromium:
	@.ci/ensure chromium

node: dev
	@.ci/ensure node

keystores:
	@.ci/ensure keystores

demo: install chromium
	@$(BIN)/tabwarden demo

test: dev chromium node keystores
	@$(PY) -m pytest -n $(WORKERS) $(ARGS)

format: dev
	@$(BIN)/ruff format --check .

lint: dev
	@$(BIN)/ruff check .

types: dev
	@$(BIN)/mypy

imports: dev
	@$(BIN)/lint-imports

coverage: dev chromium node keystores
	@rm -rf build/coverage && mkdir -p build/coverage
	@COVERAGE_FILE=build/coverage/data $(PY) -m coverage run -m pytest -n $(WORKERS)
	@cd build/coverage && ../../$(PY) -m coverage combine --rcfile=../../pyproject.toml --data-file=data --quiet .
	@$(PY) -m coverage report --data-file=build/coverage/data --include='$(COVERED)' --fail-under=90

check: format lint types imports coverage

# What the benchmark compares with.
build/peers/.installed: Makefile
	@mkdir -p build/peers
	@cd build/peers && npm install --silent --no-audit --no-fund --prefix . @playwright/mcp@0.0.83
	@touch $@

bench: dev chromium node build/peers/.installed
	@.ci/ensure chromedriver
	@$(PY) -m tests.bench

bench-disk: dev
	@.ci/ensure strace
	@rm -rf build/disk && mkdir -p -m 700 build/disk
	@$(PY) -m tests.bench.audit_disk $(abspath build/disk)

large: dev chromium
	@TABWARDEN_LARGE=1 $(PY) -m pytest tests/browser/large tests/browser/large/whole_reading.py tests/browser/screenshot/test_hostile.py tests/audit/test_shipping.py

dlp: dev
	@TABWARDEN_LARGE=1 $(PY) -m pytest -s tests/dlp/figures.py tests/dlp/test_anywhere.py

fuzz-host: dev
	@TABWARDEN_FUZZ=1 $(PY) -m pytest -s tests/host/test_fuzz.py

faults: dev
	@.ci/ensure strace
	@rm -rf build/faults && mkdir -p -m 700 build/faults
	@$(PY) -m tests.audit.strace_rounds $(abspath build/faults)
	@$(PY) -m tests.audit.crash_rounds $(abspath build/faults)/killed 1000 1

approval-orders: dev
	@TABWARDEN_APPROVAL_ROUNDS=20000 $(PY) -m pytest -s --timeout=3600 tests/approvals/test_interleavings.py

dashboards: dev
	@$(PY) -m tabwarden_observability.dashboards observability/dashboards

# Away from the others: what Phoenix brings must not decide which versions they are tested with.
build/phoenix/.installed: pyproject.toml
	@.ci/ensure python
	@mkdir -p build
	@test -x build/phoenix/bin/python || python3 -m venv build/phoenix
	@build/phoenix/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@build/phoenix/bin/python -m pip install --quiet --disable-pip-version-check --group backends
	@touch $@

test-backends: dev build/phoenix/.installed
	@.ci/ensure prometheus
	@$(PY) -m pytest -s tests/observability/backends.py tests/observability/phoenix_backend.py

limiter: dev
	@$(PY) -m tests.bench.limiter_run $(ARGS)

soak: dev
	@$(PY) -m tests.bench.soak_run $(ARGS)

properties: dev
	@$(PY) -m tests.properties

mutants: dev chromium node
	@$(PY) -m tests.mutants

vectors: dev
	@$(PY) -m tests.vectors.generate

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache tests/interop/node_modules
