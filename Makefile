# One word each: `make help` lists them. Settings: PYTHON=python3.11 make setup; PYTEST_ARGS='-k shaw' make test.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup setup-demo demo bench check test test-long lint format clean clean-env

PYTHON ?=
PYTEST_ARGS ?=
export PYTHON

# The repository's .venv, whatever else is active.
ENV := export POSENC_USE_VENV=1; source recipes/lib/env.sh;
# Two workers share two cores: more than one torch thread each only makes them wait for each other.
ONE_THREAD := export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1;
# In this environment a missing oracle is a failure, not a skip.
COMPLETE := export POSENC_REQUIRE_ORACLES=1;
# A file stays with one worker, so that what its tests share is made once.
PYTEST := python -m pytest --numprocesses 2 --dist loadscope --durations 10
# What a change most likely breaks: who imports whom, the kernels, each encoding, its main laws, presets and options.
CHECKED = tests/test_rooms.py tests/test_positions.py tests/test_readme.py tests/ops tests/encodings tests/attention \
  $(addprefix tests/laws/test_,reference.py causality.py undeclared.py count.py) \
  tests/compat/test_checkpoint_names.py tests/recipes/test_recipe_options.py
# Every shell script, also one that is not committed yet.
SCRIPTS = $$(find . -name .git -prune -o -name '.venv*' -prune -o -name results -prune -o -name '*.sh' -print) .ci/run

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

setup: ## build .venv: runtime, recipes, tests
	@recipes/lib/setup_env.sh full

setup-demo:
	@recipes/lib/setup_env.sh demo

demo: setup-demo ## train and score a small translation with several encodings -> results/demo
	@$(ENV) recipes/demo/run.sh

bench: setup ## the cost of every encoding, at most 20 minutes -> results/bench
	@$(ENV) python -m fairseq_posenc bench --quick --output results/bench

check: lint ## lint, and the tests that a change most likely breaks: 2 minutes on two quiet cores
	@$(ENV) $(ONE_THREAD) $(COMPLETE) $(PYTEST) $(PYTEST_ARGS) $(CHECKED)

test: lint ## lint, then the test suite
	@$(ENV) $(ONE_THREAD) $(COMPLETE) $(PYTEST) $(PYTEST_ARGS)

test-long: setup ## the tests marked `long`
	@$(ENV) $(ONE_THREAD) $(COMPLETE) $(PYTEST) -m long $(PYTEST_ARGS)

lint: setup ## ruff, mypy, shellcheck
	@$(ENV) ruff check . && ruff format --check . && mypy && shellcheck $(SCRIPTS)

format: setup ## let ruff format and fix what it can
	@$(ENV) ruff check --fix . && ruff format .

clean: ## remove caches, build leftovers and results/demo (keeps .venv)
	@rm -rf results/demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .setup.log
	@find . -name '.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

clean-env: ## remove .venv
	@rm -rf .venv .setup.lock
