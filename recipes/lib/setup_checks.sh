# shellcheck shell=bash
# Sourced by setup_env.sh: what must be there before anything is installed. Needs: die, PYTHON, ROOT.

# The pinned numpy, scipy and scikit-learn have no build for an older one.
readonly MIN_PYTHON="3.11"

# pick_python: $PYTHON, else the active environment's, else python3.11, else python3.
pick_python() {
  local candidates=(python3.11 python3) candidate
  if [[ -n ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} ]]; then candidates=(python3 python3.11); fi
  if [[ -n ${PYTHON:-} ]]; then candidates=("$PYTHON"); fi
  for candidate in "${candidates[@]}"; do
    # A version manager's shim exists without its Python: only one that runs counts.
    if "$candidate" -c '' 2>/dev/null; then
      PYTHON=$candidate
      return
    fi
  done
  die "no working Python (tried: ${candidates[*]}): install Python 3.11, or name one: make setup PYTHON=/path/to/python3.11"
}

check_python() {
  local found
  found=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [[ $(printf '%s\n%s\n' "$MIN_PYTHON" "$found" | sort -V | head -n 1) != "$MIN_PYTHON" ]]; then
    die "Python $found ($PYTHON) is too old, $MIN_PYTHON is needed: install it, then: make setup PYTHON=python3.11"
  fi
  if ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
    die "Python $found ($PYTHON) lacks venv: install it (Debian, Ubuntu: apt install python$found-venv)"
  fi
  if [[ $found != "$MIN_PYTHON" ]]; then
    echo "  note: Python $found is untested; the pinned versions were tested with $MIN_PYTHON"
  fi
}

# fairseq and fastBPE are compiled here: a compiler that runs, and Python's headers.
check_compiler() {
  local compiler include
  for compiler in ${CXX:-c++ g++ clang++}; do
    if "$compiler" --version >/dev/null 2>&1; then break; fi
    compiler=
  done
  if [[ -z $compiler ]]; then
    die "no C++ compiler (tried: ${CXX:-c++ g++ clang++}): install one (Debian, Ubuntu: apt install g++), or set CXX"
  fi
  include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  if [[ ! -f $include/Python.h ]]; then
    die "no Python.h in $include: install Python's headers (Debian, Ubuntu: apt install python3.11-dev)"
  fi
}

# check_space MEGABYTES: what is free where .venv goes. POSENC_MIN_SPACE_MB overrides it.
check_space() {
  local need=${POSENC_MIN_SPACE_MB:-$1} free
  free=$(df -Pk "$ROOT" | awk 'NR == 2 { print int($4 / 1024) }')
  if ((free < need)); then
    die "$free MB free in $ROOT, about $need MB are needed: free some space (POSENC_MIN_SPACE_MB lowers this check)"
  fi
}
