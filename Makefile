# FRAME. `make book` and `make test` need Python 3.11 or newer and a package index, and nothing else:
# they make the environment .venv from requirements.lock and requirements-tables.lock, once, and again when
# a lock changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready
MODELS := $(VENV)/.models
PAGE := _build/html/index.html
JOBS ?= 2
PROFILE ?= demo
UV_VERSION := 0.13.9

# A kernel, a style or a package of the user's own must not reach the tests and the book.
export PYTHONNOUSERSITE := 1
export JUPYTER_PREFER_ENV_PATH := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env models book test check-book notebooks lint format bench characteristics picture lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  The environment is made with python3; another one: make PYTHON=python3.12 book"

# --- environment ---------------------------------------------------------------------------------------------

# One clear sentence when the Python at hand cannot make the environment.
define require_python
@command -v $(PYTHON) >/dev/null 2>&1 || { \
  echo "$(PYTHON) was not found. FRAME needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3 book" >&2; \
  exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "$(PYTHON) is $$($(PYTHON) -V 2>&1). FRAME needs Python 3.11 or newer; name one: make PYTHON=python3.12 book" >&2; \
  exit 1; }
@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
  echo "$(PYTHON) has no venv module, which makes the environment. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
  exit 1; }
endef

# Each stamp is written by the last command of its recipe, so that an interrupted installation leaves none;
# the next call then starts again from an empty environment. The second lock holds a package whose tables are
# read from its files; what it would import (torch among them) is left out.
$(LOCKED): requirements.lock requirements-tables.lock
	$(require_python)
	@echo "Installing $$(cat $^ | grep -c ==) locked packages into $(VENV): once, about two minutes."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-tables.lock
	@touch $@

# Kernels log errors only: at every start they warn that they talk to this machine without encryption.
$(READY): pyproject.toml $(LOCKED)
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@mkdir -p $(VENV)/etc/ipython
	@echo 'get_config().IPKernelApp.log_level = "ERROR"' > $(VENV)/etc/ipython/ipython_kernel_config.py
	@touch $@

# What images are turned into features with: torch and its companions. Shared packages have the same versions in
# both locks, so that only what is not there yet is added.
$(MODELS): requirements-models.lock $(READY)
	@echo "Installing what encoders need into $(VENV): once, a few minutes, about 6 GB."
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements-models.lock
	@touch $@

env: $(READY) ## make the environment .venv
models: $(MODELS) ## add to it what encoders need (torch, about 6 GB)

# --- what a reader and a contributor run ---------------------------------------------------------------------

# The graph decides by content what is stale: a notebook whose modules, tables and text are what they were is
# not executed again. Another profile: make book PROFILE=open.
book: $(MODELS) ## make what is stale and build the book; ends by printing where to open it
	@$(BIN)/frame book --profile $(PROFILE) --cores $(JOBS)

# One worker per file: a notebook's cells run in order in one kernel of their own. Some show results of the study.
test: $(MODELS) ## run the tests, the notebooks among them
	@$(BIN)/frame run cohort_counts
	@$(BIN)/frame run synthetic_model
	@$(BIN)/frame run injection
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not browser" --nbval tests notebooks

check-book: $(READY) ## check the built book: links, pictures, and each page in a browser with the network off
	@test -f $(PAGE) || { echo "There is no built book yet: run make book first." >&2; exit 1; }
	@$(BIN)/python -m pytest -m browser tests/end_to_end

notebooks: $(MODELS) ## execute the notebooks again and store their outputs
	@$(BIN)/frame run cohort_counts
	@$(BIN)/frame run synthetic_model
	@$(BIN)/frame run injection
	@$(BIN)/jupyter nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.record_timing=False notebooks/*.ipynb

lint: $(READY) ## style, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY) ## rewrite the code in the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## time the commands against importing their libraries
	@$(BIN)/python -m benchmarks

characteristics: $(READY) ## simulate the operating characteristics in data/ again (an hour on two cores)
	@$(BIN)/python -m frame.characteristics

picture: $(READY) ## draw the overview picture of the README and the book again
	@$(BIN)/python -m frame.figures.overview book/images/overview.svg

lock: ## resolve the three locks and environment.yml again
	$(require_python)
	@test -x $(VENV)-lock/bin/uv || { $(PYTHON) -m venv --clear $(VENV)-lock && \
	  $(VENV)-lock/bin/python -m pip install --quiet uv==$(UV_VERSION); }
	@$(VENV)-lock/bin/python requirements/update.py --uv $(VENV)-lock/bin/uv

clean: ## remove the environments, the built book and all caches
	rm -rf $(VENV) $(VENV)-lock _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
