# Every target sets up what it needs: Python 3.11 or newer with venv, and make, are enough.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Two quiets: warnings about a machine's own pip settings are noise here, errors still show.
PIP    := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
# Bytecode is kept, also where a machine forbids it: else each of many processes compiles it again.
export PYTHONDONTWRITEBYTECODE :=
# Tests that share a set-up stay with one worker, unless another one is idle.
# Half as many workers again as cores: tests of servers wait half of their time.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((3 * (os.cpu_count() or 1) + 1) // 2)' 2>/dev/null || echo auto)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Extra arguments: make test ARGS="-k laplace -n 2", make bench ARGS=--no-peers
ARGS   ?=

.DEFAULT_GOAL := help
# `check` must end with the tests' own summary, also under `make -j`.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo leak test evidence check anchors engines serve-tests training-tests bench bench-accounting bench-audit bench-tables bench-engines bench-serve bench-training utility utility-tables honest-tables attacks lint types contracts docs site figures reference trusted comparison format lock dist clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

demo: $(READY) ## ask a made-up hospital of a million visits, beside the truth (writes lastbit-demo/)
	@$(BIN)/lastbit demo $(ARGS)

leak: $(READY) ## show textbook floating-point noise leaking, and exact noise not
	@$(BIN)/lastbit leak

test: $(READY) ## run the tests, the doc pages and the docstring examples (minutes)
	@$(PYTEST) $(ARGS)

# One run for the tests and the evidence: both are collected once, and no worker waits between them.
# The evidence about servers (tests/conftest.py: SERVERS) takes as long again: make evidence has it.
check: lint types contracts anchors engines serve-tests site training-tests ## everything CI runs; the tests come last
	@LASTBIT_EVIDENCE=1 $(PYTEST) --durations=40 --durations-min=2 $(ARGS)

evidence: $(READY) ## the tests that are marked as evidence: thousands of files, mutations and kills (minutes)
	@$(PYTEST) -m evidence tests $(ARGS)

bench: $(READY) ## run the benchmarks
	@$(BIN)/python bench/run.py $(ARGS)

bench-accounting: $(READY) ## epsilon of known compositions beside other accountants, unsound ones marked (minutes)
	@$(BIN)/python bench/accounting.py $(ARGS)

bench-audit: $(READY) ## what audits certify of known mechanisms, beside other auditors (half an hour)
	@$(BIN)/python bench/audit.py $(ARGS)

bench-tables: $(READY) ## answers about tables against DuckDB, OpenDP and Tumult (a quarter of an hour; ARGS=--huge: 10^8 rows too)
	@$(BIN)/python bench/tables.py $(ARGS)

bench-engines: $(VENV)/.engines ## the standard question on DuckDB, PostgreSQL and Spark, beside Tumult; writes docs/engines-benchmarks.md (half an hour; ARGS=--huge: 10^8 rows too)
	@$(BIN)/python bench/engines.py $(ARGS)

bench-serve: $(READY) ## fifty analysts at one server for ten minutes: previews, charges, memory
	@$(BIN)/python bench/serve.py $(ARGS)

bench-training: $(VENV)/training/.ready ## steps of DP-SGD beside Opacus, and accuracy at equal epsilon (minutes)
	@$(TRAINING) bench/training.py $(ARGS)

utility: $(READY) ## how far off private medians are; draws docs/utility.md (minutes; ARGS=--figures draws only)
	@$(BIN)/python bench/utility.py $(ARGS)

utility-tables: $(READY) ## how far off answers about real tables are, beside OpenDP and Tumult; writes docs/utility-tables.md (an hour)
	@$(BIN)/python bench/tables_real.py
	@$(BIN)/python bench/utility_tables.py $(ARGS)

honest-tables: $(READY) ## forty questions to six real tables, and whether the truth lies within what is shown; writes docs/honest-tables.md (half an hour)
	@$(BIN)/python bench/honest_tables.py $(ARGS)

attacks: $(READY) ## try every known attack on numpy, us and others; writes docs/attacks.md (minutes; ARGS=--page only writes)
	@$(BIN)/python bench/attacks.py $(ARGS)

lint: $(READY) ## style and likely bugs (ruff)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## static types (mypy --strict)
	@$(BIN)/mypy

anchors: $(VENV)/.anchored ## install another library's accountant, for tests, and a public table that pages use

engines: $(VENV)/.engines ## install drivers and servers of other engines, for their tests

serve-tests: $(VENV)/.browser ## install what tests of the server need: a browser's driver, an API's fuzzer
	@command -v chromium >/dev/null || \
	    echo "No chromium here: tests in a browser will be skipped. On Debian: apt install chromium"

training-tests: $(VENV)/training/.ready ## install torch, JAX and Opacus apart, and run the tests of training there
	@$(TRAINING) -m pytest -n auto --dist worksteal \
	    tests/training src/lastbit/training $(ARGS)

contracts: $(READY) ## which room may import which (import-linter)
	@$(BIN)/lint-imports --no-logo

docs: $(READY) ## execute the pages, check their links and the command-line reference
	@LASTBIT_EVIDENCE=1 $(BIN)/python -m pytest tests/docs

site: $(VENV)/.site ## build the documentation site to build/site, and check it; read it with: lastbit docs
	@rm -rf build/site
	@$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --jobs auto \
	    --write-all --conf-dir docs --doctree-dir build/doctrees . build/site
	@$(BIN)/python docs/check_site.py

figures: $(READY) ## draw the figures of the theory in docs/figures (ARGS=posterior: one)
	@$(BIN)/python -m docs.draw_figures $(ARGS)

reference: $(READY) ## write docs/reference/ from the docstrings, the errors and the commands' own help
	@$(BIN)/python -m docs.generate_api
	@$(BIN)/python -m docs.generate_errors
	@$(BIN)/python -m docs.generate_cli

trusted: $(READY) ## count what must be right for an answer to be private; writes docs/trusted-base.md
	@$(BIN)/python -m docs.generate_trusted

comparison: $(READY) ## write docs/comparison.md from the saved benchmarks
	@$(BIN)/python bench/comparison.py

format: $(READY) ## let ruff format the code and fix what it can
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

lock: ## resolve requirements.lock again from pyproject.toml
	@echo "Resolving requirements.lock ..."
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip --quiet --quiet --disable-pip-version-check install uv
	@sed '/^[^#]/,$$d' requirements.lock > build/lock/header
	@build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --group dev \
	    --generate-hashes --no-header --no-annotate pyproject.toml > build/lock/body
	@cat build/lock/header build/lock/body > requirements.lock

# What people install: built, then tried from another folder, in an environment that has nothing else.
dist: site ## build dist/*.whl and dist/*.tar.gz with the site in them, and try them in an empty environment
	@rm -rf dist src/lastbit/site build/try && cp -r build/site src/lastbit/site
	@$(BIN)/python -m hatchling build || { rm -rf src/lastbit/site; exit 1; }
	@rm -rf src/lastbit/site
	@for built in dist/*.whl dist/*.tar.gz; do \
	    echo "Trying $$built in an empty environment ..." && $(PYTHON) -m venv --clear build/try && \
	    build/try/bin/python -m pip --quiet --quiet --disable-pip-version-check install $$built && \
	    (cd build/try && bin/python ../../tests/docs/pages.py ../../README.md && bin/python ../../docs/check_site.py && \
	        mkdir first && cd first && ../bin/python ../../../tests/cli/first_commands.py) || exit 1; \
	done
	@ls -l dist

clean: ## remove the environment, builds and caches
	@rm -rf $(VENV) bench/.venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---------------------------------------------------------------- set-up

# Cleared first: a package that left the lock must leave the environment too.
$(VENV)/.locked: requirements.lock
	@command -v $(PYTHON) >/dev/null || \
	    { echo "$(PYTHON) was not found. Install Python 3.11 or newer, or say: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "lastbit needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 | head -n 1). Say: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	    { echo "$(PYTHON) has no venv module. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV) from requirements.lock (once, about half a minute) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.anchored: $(READY) requirements-anchors.lock
	@echo "Installing requirements-anchors.lock, for comparisons and pages ..."
	@$(PIP) install --no-deps --require-hashes -r requirements-anchors.lock
	@touch $@

$(VENV)/.engines: $(READY) requirements-engines.lock
	@echo "Installing requirements-engines.lock: drivers and servers of other engines ..."
	@$(PIP) install --no-deps --require-hashes -r requirements-engines.lock
	@touch $@

$(VENV)/.browser: $(READY) requirements-serve.lock
	@echo "Installing requirements-serve.lock: what tests of the server need ..."
	@$(PIP) install --no-deps --require-hashes -r requirements-serve.lock
	@touch $@

# Above $(VENV), whose packages it sees: torch brings 1 GB, and 5 where only its usual build is found.
TRAINING := $(VENV)/training/bin/python
TRAIN_PIP := $(TRAINING) -m pip --quiet --quiet --disable-pip-version-check install --no-deps --require-hashes
$(VENV)/training/.ready: requirements-training.lock requirements-training-cpu.lock requirements-training-gpu.lock | $(READY)
	@echo "Installing torch, JAX and Opacus into $(VENV)/training (a minute or four) ..."
	@$(PYTHON) -m venv --clear $(VENV)/training
	@$(BIN)/python -c 'import pathlib, sysconfig; \
	    own = sysconfig.get_path("purelib", vars={"base": "$(VENV)/training"}); \
	    line = "import site; site.addsitedir({!r})\n".format(sysconfig.get_path("purelib")); \
	    pathlib.Path(own, "above.pth").write_text(line)'
	@$(TRAIN_PIP) -r requirements-training.lock
	@$(TRAIN_PIP) -r requirements-training-cpu.lock 2>/dev/null || $(TRAIN_PIP) -r requirements-training-gpu.lock
	@$(TRAINING) -c 'import jax, opacus, optax, torch' || \
	    { echo "torch, JAX or Opacus does not start in $(VENV)/training" >&2; exit 1; }
	@touch $@

$(VENV)/.site: $(READY) requirements-site.lock
	@echo "Installing requirements-site.lock: what builds the site ..."
	@$(PIP) install --no-deps --require-hashes -r requirements-site.lock
	@touch $@

$(READY): $(VENV)/.locked pyproject.toml
	@echo "Installing lastbit into $(VENV) ..."
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@
