# shellcheck shell=bash
# Sourced by every recipe and by the Makefile: finds the repository, activates its environment, sets the
# allocator. An active virtualenv or conda environment is used as it is; conda's `base` does not count,
# because many shells start in it. POSENC_USE_VENV=1 takes the repository's .venv whatever is active,
# POSENC_LOOK_ONLY=1 needs no fairseq in it.

POSENC_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
export POSENC_ROOT

posenc_has_active_env() {
  [[ -z ${POSENC_USE_VENV:-} ]] || return 1
  [[ -z ${VIRTUAL_ENV:-} ]] || return 0
  [[ -n ${CONDA_PREFIX:-} && ${CONDA_DEFAULT_ENV:-} != base ]]
}

posenc_activate() {
  if ! posenc_has_active_env; then
    export VIRTUAL_ENV="$POSENC_ROOT/.venv" PATH="$POSENC_ROOT/.venv/bin:$PATH"
    unset CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONHOME
  fi
  [[ -z ${POSENC_LOOK_ONLY:-} ]] || return 0
  local has_fairseq='import importlib.util, sys; sys.exit(importlib.util.find_spec("fairseq") is None)'
  if ! python -c "$has_fairseq" 2>/dev/null; then
    echo "error: no fairseq in ${VIRTUAL_ENV:-${CONDA_PREFIX:-}}: run 'make setup'" \
      "(or deactivate that environment, to use .venv)" >&2
    return 1
  fi
}

# glibc maps and faults every large temporary anew unless both thresholds are raised: measured 2.3x -> 1.2x
# for explicit attention at length 512. 1 and 4 GiB, as in the benchmark; other C libraries ignore both.
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-1073741824}"
export MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-4294967296}"

# `return` when sourced under `set -e` ends the caller with the line above as its only message.
posenc_activate || return 1
