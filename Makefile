# `make demo` and `make test` need Python >= 3.11 and nothing else; a C compiler is used if there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# An editable install rebuilds the compiled passes at import, with the tools of .venv: on the PATH
# here, and by their full names in the build, so that a bare .venv/bin/python can rebuild too.
WITH_TOOLS := PATH="$(CURDIR)/$(BIN):$$PATH" CYTHON="$(CURDIR)/$(BIN)/cython"
RUN := $(WITH_TOOLS) $(BIN)/python
# The tests on all CPUs, one that is done takes over from the others; ARGS=-n0 is one process.
PYTEST := -m pytest -n logical --dist worksteal
RECIPES := pyproject.toml meson.build meson.options $(wildcard src/rskc/meson.build src/rskc/*/meson.build)

.DEFAULT_GOAL := help
.PHONY: help setup demo test device test-slow coverage sanitize bench history docs lint format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## the package and what it needs, in .venv

demo: $(VENV)/.installed ## the whole tour on a bundled example: pages to open
	@$(RUN) -m rskc demo --force

test: $(VENV)/.test ## the tests and doctests
	@$(RUN) $(PYTEST) $(ARGS)

device: $(VENV)/.device ## torch, for the tests of the device engine; without it they are skipped

test-slow: $(VENV)/.test ## the long tests too
	@$(RUN) $(PYTEST) -m "slow or not slow" $(ARGS)

sanitize: $(VENV)/.test ## tests of the passes with AddressSanitizer and UndefinedBehaviorSanitizer
	@$(RUN) tests/sanitize.py $(ARGS)

coverage: $(VENV)/.coverage ## which lines the tests run, in htmlcov
	@RSKC_EXTRAS=all $(RUN) $(PYTEST) --cov --cov-report=term --cov-report=html $(ARGS)

bench: $(VENV)/.test ## the rivals side by side
	@$(RUN) -m benchmarks $(ARGS)

history: $(VENV)/.history ## times of a few past commits: ARGS="HEAD~20..HEAD --steps 4"
	@cd benchmarks/history && ../../$(BIN)/asv run $(or $(ARGS),HEAD^!)

docs: $(VENV)/.docs ## the documentation, in docs/_build/html
	@$(RUN) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

lint: $(VENV)/.lint ## ruff and mypy; the scripts of the explorer after npm install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if [ -d node_modules ]; then npm run --silent check; fi

format: $(VENV)/.lint ## put the code in form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) build dist wheelhouse .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || \
		{ echo "rskc: $(PYTHON) not found; install Python 3.11 or newer, or name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "rskc: Python 3.11 or newer is needed and $(PYTHON) is older; name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "rskc: setting up $(VENV), which takes a minute or two"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(RECIPES) | $(BIN)/python
	@$(PIP) install --upgrade "pip>=25.1"
	@$(PIP) install --group build
	@$(WITH_TOOLS) $(PIP) install --no-build-isolation --editable ".[all]"
	@$(RUN) -c "import rskc; rskc.show_versions()"
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	@$(PIP) install --group test
	@touch $@

$(VENV)/.device: $(VENV)/.test
	@$(PIP) install --group device
	@touch $@

$(VENV)/.coverage: $(VENV)/.test
	@$(PIP) install --group coverage
	@touch $@

$(VENV)/.history: | $(BIN)/python
	@$(PIP) install --upgrade "pip>=25.1"
	@$(PIP) install --group history
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	@$(PIP) install --group docs
	@touch $@

# With the package and its extras: mypy reads their types.
$(VENV)/.lint: $(VENV)/.installed
	@$(PIP) install --group lint
	@touch $@
