# shellcheck shell=bash
# setup_env.sh sources this file. It checks the requirements before anything is installed.
# It needs the function `die` and the variables PYTHON and ROOT.

# The pinned numpy, scipy and scikit-learn have no builds for older versions of Python.
readonly MIN_PYTHON="3.11"

# pick_python: choose $PYTHON, or the Python of the active environment, or python3.11, or python3.
pick_python() {
  local candidates=(python3.11 python3) candidate
  if [[ -n ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} ]]; then candidates=(python3 python3.11); fi
  if [[ -n ${PYTHON:-} ]]; then candidates=("$PYTHON"); fi
  for candidate in "${candidates[@]}"; do
    # The start script of a version manager may exist without its Python, so try to run each candidate.
    if "$candidate" -c '' 2>/dev/null; then
      PYTHON=$candidate
      return
    fi
  done
  die "none of these Pythons works: ${candidates[*]}. Install Python 3.11, or run: make setup PYTHON=/path/to/python3.11"
}

check_python() {
  local version
  version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [[ $(printf '%s\n%s\n' "$MIN_PYTHON" "$version" | sort -V | head -n 1) != "$MIN_PYTHON" ]]; then
    die "Python $version ($PYTHON) is too old. Install Python $MIN_PYTHON, then run: make setup PYTHON=python3.11"
  fi
  if ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
    die "Python $version ($PYTHON) lacks the module venv. Install it (Debian, Ubuntu: apt install python$version-venv)."
  fi
  if [[ $version != "$MIN_PYTHON" ]]; then
    echo "  note: the pinned versions were tested with Python $MIN_PYTHON, but not with Python $version"
  fi
}

# check_compiler: fairseq and fastBPE are compiled during the setup, which needs a C++ compiler and Python's headers.
check_compiler() {
  local compiler include
  for compiler in ${CXX:-c++ g++ clang++}; do
    if "$compiler" --version >/dev/null 2>&1; then break; fi
    compiler=
  done
  if [[ -z $compiler ]]; then
    die "no C++ compiler works (tried: ${CXX:-c++ g++ clang++}). Install one (Debian, Ubuntu: apt install g++), or set CXX."
  fi
  include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  if [[ ! -f $include/Python.h ]]; then
    die "$include: Python.h is missing. Install Python's headers (Debian, Ubuntu: apt install python3.11-dev)."
  fi
}

# check_space MEGABYTES: fail if the disk of .venv has less free space. POSENC_MIN_SPACE_MB overrides the number.
check_space() {
  local need=${POSENC_MIN_SPACE_MB:-$1} free
  free=$(df -Pk "$ROOT" | awk 'NR == 2 { print int($4 / 1024) }')
  if ((free < need)); then
    die "$ROOT: the disk has $free MB of free space, but the setup needs about $need MB. Free some space," \
      "or lower the limit with POSENC_MIN_SPACE_MB."
  fi
}
