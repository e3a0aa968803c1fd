# Every target is a single word; `make help` lists the targets. Variables change them, for example
# `PYTHON=python3.11 make setup` and `PYTEST_ARGS='-k shaw' make test`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo bench check test test-long test-slurm mutants lint docs format clean clean-env

PYTHON ?=
PYTEST_ARGS ?=
export PYTHON

# Use the repository's .venv, whatever environment is active.
ENV := export POSENC_USE_VENV=1; source recipes/lib/env.sh;
# Two workers share two cores. With more than one torch thread each, they would only wait for each other.
ONE_THREAD := export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1;
# .venv has all oracles (independent implementations), so a missing oracle is a failure and not a reason to skip tests.
COMPLETE := export POSENC_REQUIRE_ORACLES=1;
# All tests of a file run in one worker, so that their shared fixtures are built only once. Files with few tests, which
# are often the slowest, do not run last.
PYTEST := python -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder --durations 10
# Tests that a change most likely breaks: imports between rooms, kernels, encodings and their main laws, presets, options.
CHECKED = tests/test_rooms.py tests/test_positions.py tests/docs/test_generated.py tests/ops tests/encodings tests/attention \
  $(addprefix tests/laws/test_,reference.py causality.py undeclared.py count.py) \
  tests/compat/test_literals.py tests/recipes/lib/test_results.py
# All shell scripts, including those that are not committed yet.
SCRIPTS = $$(find . -name .git -prune -o -name '.venv*' -prune -o -name results -prune -o -name conf -prune -o -name protocols -prune -o -name '*.sh' -print) .ci/run

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

setup: ## build .venv with all packages that the recipes and the tests need
	@recipes/lib/setup_env.sh full

demo: ## train and score small translation models with several encodings; write results/demo
	@recipes/lib/setup_env.sh demo
	@$(ENV) recipes/demo/run.sh

bench: setup ## measure the time of every encoding, and compare it with its target (at most 12 minutes)
	@$(ENV) python tests/benchmarks/layers.py --quick

check: lint ## run the linters and the tests that a change most likely breaks (one minute on two quiet cores)
	@$(ENV) $(ONE_THREAD) $(COMPLETE) $(PYTEST) $(PYTEST_ARGS) $(CHECKED)

test: lint ## run the linters, then the test suite
	@$(ENV) $(ONE_THREAD) $(COMPLETE) $(PYTEST) $(PYTEST_ARGS)

test-long: setup ## run the tests marked `long`, and those in a headless browser (skipped without chromium)
	@$(ENV) $(ONE_THREAD) $(COMPLETE) $(PYTEST) -m 'long or browser' -rs $(PYTEST_ARGS)

test-slurm: setup ## start a Slurm cluster on this machine, train on it and stop it (as root; may install slurm-wlm)
	@$(ENV) $(ONE_THREAD) tests/slurm/cluster.sh python -m pytest -m slurm $(PYTEST_ARGS) tests/slurm

mutants: setup ## change the Python code in 300 places and count the changes that tests notice (hours; resumable)
	@$(ENV) $(ONE_THREAD) $(COMPLETE) python tests/mutants.py

lint: setup ## run ruff, mypy and shellcheck
	@$(ENV) { ruff check . && ruff format --check .; } || { echo 'Run `make format`: it mends what ruff can mend.'; exit 1; }
	@$(ENV) shellcheck $(SCRIPTS)
	@$(ENV) shellcheck --shell bash --exclude SC1091,SC2034,SC2054,SC2154,SC2209 recipes/*/conf/*.sh recipes/lib/finetuning/protocols/*.sh & mypy || { wait; exit 1; }; wait $$!

docs: ## write the generated pages, and build docs/ as a site in docs/_build/html (broken links are errors)
	@recipes/lib/setup_env.sh docs
	@$(ENV) python docs/_generate
	@$(ENV) sphinx-build -M html . docs/_build -c docs --fresh-env --fail-on-warning --keep-going --nitpicky --quiet
	@echo "Open docs/_build/html/index.html"

format: setup ## format the code with ruff, and fix what ruff can fix
	@$(ENV) ruff check --fix . && ruff format .

clean: ## remove caches, build files and results/demo, but keep .venv
	@rm -rf results/demo docs/_build build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .setup.log
	@find . -name '.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

clean-env: ## remove .venv
	@rm -rf .venv .setup.lock
