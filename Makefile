# make demo    install, then show one protected session on a real browser
# make test    install, then run the tests
# make check   everything a change must pass: format, lint, types, import directions, tests, coverage
# make bench   measure; prints a table and writes build/bench.json
# make large   the tests with large input and restless pages in full: some minutes
# make mutants remove one check at a time; the tests must notice each

SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
export PATH := $(abspath $(VENV))/bin:$(PATH)
PY := $(BIN)/python
WORKERS ?= auto
# Coverage of these rooms is demanded; the others are reported.
COVERED := broker/tabwarden/*

.PHONY: demo test check format lint types imports coverage bench large mutants vectors clean install dev chromium node keystores

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

bench: dev
	@mkdir -p build
	@$(PY) -m tests.bench

large: dev chromium
	@TABWARDEN_LARGE=1 $(PY) -m pytest tests/browser/large tests/browser/large/whole_reading.py tests/browser/screenshot/test_hostile.py

mutants: dev chromium node
	@$(PY) -m tests.mutants

vectors: dev
	@$(PY) -m tests.vectors.generate

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache tests/interop/node_modules
