# Needs python3 (3.11 or newer) with venv; everything else goes into .venv. pip's own settings (PIP_*) apply.
PYTHON ?= python3
VENV ?= .venv
SOAK ?= 10
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench docs oldest soak clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

# Stamps: a step runs again only when its reason has changed.

$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "commlens needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade 'pip>=25.1'  # the first one that knows dependency groups
	@touch $@

$(VENV)/.core: pyproject.toml $(VENV)/.pip
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) install --quiet --editable . --group dev
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) install --quiet --editable . --group docs
	@touch $@

demo: $(VENV)/.core ## what a module communicates, what one group list means, how to write one
	$(BIN)/commlens report examples/fsdp_tp_scan_2x4.after.txt.gz --mesh data=2,model=4
	$(BIN)/commlens explain '[4,2]<=[2,4]T(1,0)' --mesh data=2,model=4
	$(BIN)/commlens groups --mesh data=2,model=4 --over data

lint: $(VENV)/.dev ## format, lint, import rules, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo --no-cache pyproject.toml tools/import-cycles.toml
	$(BIN)/basedpyright --pythonpath $(BIN)/python

test: lint ## all checks, then the tests (PYTEST_ARGS are passed on)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

format: $(VENV)/.dev ## format and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## speed and memory, with the ratios to XLA's own reader and to numpy (some minutes)
	$(BIN)/python -m pytest benchmarks -o python_files='bench_*.py' -o addopts=--import-mode=importlib --benchmark-only $(BENCH_ARGS)

docs: $(VENV)/.docs ## the documentation as HTML in docs/_build
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs docs/_build
	@echo "open docs/_build/index.html"

oldest: ## the tests with the oldest core dependencies that are allowed (without those that ask XLA or lint)
	$(PYTHON) -m venv .venv/oldest
	.venv/oldest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv/oldest/bin/python -m pip install --quiet --editable . --constraint constraints/oldest.txt pytest hypothesis zstandard
	.venv/oldest/bin/python -m pytest -m 'not xla' --ignore-glob='*oracle*' --ignore=tests/test_layering.py $(PYTEST_ARGS)

# XLA_PYTHONS='A/bin/python B/bin/python': interpreters with other releases of jaxlib, which read all modules too.
soak: $(VENV)/.dev ## all of ../shared/corpus through XLA, then fuzzers for SOAK=10 minutes each, then generated tests for long
	$(BIN)/python -m pytest tests/oracles/soak --soak $(SOAK) $(XLA_PYTHONS:%=--xla-python=%)
	$(BIN)/python -m pytest tests/fuzz --soak $(SOAK)
	$(BIN)/python -m pytest tests -m hypothesis --hypothesis-profile=long

clean: ## remove everything that make made
	rm -rf $(VENV) docs/_build benchmarks/.cache .benchmarks .hypothesis .pytest_cache .ruff_cache
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +
