# shellcheck shell=bash
# Every recipe and the Makefile source this file. It finds the repository, activates its environment and
# configures the memory allocator. An active virtualenv or conda environment is used as it is; conda's `base`
# does not count, because many shells start in it. POSENC_USE_VENV=1 always uses the repository's .venv.
# POSENC_LOOK_ONLY=1 accepts an environment without fairseq.

POSENC_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
export POSENC_ROOT

posenc_has_active_env() {
  [[ -z ${POSENC_USE_VENV:-} ]] || return 1
  [[ -z ${VIRTUAL_ENV:-} ]] || return 0
  [[ -n ${CONDA_PREFIX:-} && ${CONDA_DEFAULT_ENV:-} != base ]]
}

posenc_activate() {
  posenc_has_active_env && return
  posenc_own=1
  export VIRTUAL_ENV="$POSENC_ROOT/.venv" PATH="$POSENC_ROOT/.venv/bin:$PATH"
  # The last variable would forbid Python to store compiled modules, which cost every command seconds.
  unset CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONHOME PYTHONDONTWRITEBYTECODE
}

posenc_refuse_without_fairseq() {
  local has_fairseq='import importlib.util, sys; sys.exit(importlib.util.find_spec("fairseq") is None)'
  python -c "$has_fairseq" 2>/dev/null && return
  local advice=", or deactivate the environment to use .venv"
  [[ -z ${posenc_own:-} ]] || advice=""
  echo "error: ${VIRTUAL_ENV:-${CONDA_PREFIX:-}}: fairseq is not installed in this environment." \
    "Run 'make setup'$advice." >&2
  return 1
}

# Unless both thresholds are raised, glibc asks the system for new memory for every large temporary tensor.
# With them, explicit attention at length 512 took 1.2 times instead of 2.3 times the time of fused attention.
# The thresholds are 1 and 4 GiB, as in the benchmark; other C libraries ignore them.
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-1073741824}"
export MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-4294967296}"

posenc_activate
# If this fails, `return` ends a caller that has `set -e`; the error above is then its only message.
[[ -n ${POSENC_LOOK_ONLY:-} ]] || posenc_refuse_without_fairseq || return 1
