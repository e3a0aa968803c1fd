# shellcheck shell=bash
# setup_env.sh sources this file. It checks the requirements before anything is installed.
# It needs the functions `die` and `python_of_venv` and the variables PYTHON and ROOT.

# The pinned numpy, scipy and scikit-learn have no builds for older versions of Python.
readonly MIN_PYTHON="3.11"
# Versions that the pinned packages were tested with, the best first: fairseq has a ready build for 3.12 only.
readonly TESTED_PYTHONS="3.12 3.11"

# pick_python: choose $PYTHON, or the Python of the active environment, or the best version that this machine has.
pick_python() {
  local candidate names
  if [[ -n ${PYTHON:-} ]]; then
    if "$PYTHON" -c '' 2>/dev/null; then return; fi
    die "PYTHON=$PYTHON does not work. Give the path of a Python: make setup PYTHON=/path/to/python3.12"
  fi
  names=$(candidates)
  while read -r candidate; do
    # The start script of a version manager may exist without its Python, so run each candidate.
    if ! is_new_enough "$candidate"; then continue; fi
    PYTHON=${PYTHON:-$candidate}
    if has_venv "$candidate"; then
      PYTHON=$candidate
      return
    fi
  done <<<"$names"
  if [[ -z ${PYTHON:-} ]]; then
    die "no Python $MIN_PYTHON or newer works (tried: ${names//$'\n'/ }). Install Python 3.12, or run:" \
      "make setup PYTHON=/path/to/python3.12"
  fi
}

is_new_enough() { "$1" -c "import sys; sys.exit(sys.version_info < (${MIN_PYTHON/./, }))" 2>/dev/null; }
has_venv() { "$1" -c 'import venv, ensurepip' 2>/dev/null; }
minor_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# candidates: print the Pythons to try, the best first. If .venv works, it keeps the Python from which it was built.
candidates() {
  local version
  if python_of_venv 'import sys; print(sys._base_executable)' | grep .; then return; fi
  if is_environment_active; then echo python3; fi
  for version in $TESTED_PYTHONS 3.13; do
    echo "python$version"
    kept_aside "$version"
  done
  echo python3
}

# is_environment_active: as in env.sh, conda's `base` does not count, because many shells start in it.
is_environment_active() {
  [[ -n ${VIRTUAL_ENV:-} || (-n ${CONDA_PREFIX:-} && ${CONDA_DEFAULT_ENV:-} != base) ]]
}

# kept_aside VERSION: print the Pythons that pyenv, uv and conda keep in their own folders. The command on PATH is
# missing there, or it is a shim of pyenv, which fails unless the user has selected the version.
kept_aside() {
  local folder home=${HOME:-/}
  local uv=${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-$home/.local/share}/uv/python}
  local conda=${CONDA_EXE:-$home/miniconda3/bin/conda}
  for folder in "${PYENV_ROOT:-$home/.pyenv}/versions/$1".* "$uv/cpython-$1"[.-]* \
    {"${conda%/*/*}","$home"/{anaconda3,miniforge3}}{,/envs/*}; do
    if [[ -x $folder/bin/python$1 ]]; then echo "$folder/bin/python$1"; fi
  done
}

check_python() {
  local version
  version=$(minor_version "$PYTHON")
  if ! is_new_enough "$PYTHON"; then
    die "Python $version ($PYTHON) is too old. Install Python 3.12, then run: make setup PYTHON=python3.12"
  fi
  if ! has_venv "$PYTHON"; then
    die "Python $version ($PYTHON) lacks the module venv. Install it (Debian, Ubuntu: apt install python$version-venv)."
  fi
  if [[ " $TESTED_PYTHONS " != *" $version "* ]]; then
    echo "  note: the pinned versions were tested with Python ${TESTED_PYTHONS// / and }, but not with Python $version"
  fi
}

# has_ready_fairseq: whether .venv has fairseq, or the package index has a build that only needs to be unpacked.
has_ready_fairseq() {
  [[ -n $(python_of_venv 'from importlib.metadata import version; print(version("fairseq-fixed"))') ]] ||
    "$PYTHON" -c 'import sys, sysconfig
sys.exit((sys.version_info[:2], sysconfig.get_platform()) != ((3, 12), "linux-x86_64"))'
}

# missing_to_compile: print what is missing to compile Python's extensions in C++, and how to install it.
missing_to_compile() {
  local compiler include
  for compiler in ${CXX:-c++ g++ clang++}; do
    if ! "$compiler" --version >/dev/null 2>&1; then continue; fi
    include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    if [[ -f $include/Python.h ]]; then return; fi
    echo "$include: Python.h is missing. Install Python's headers (Debian, Ubuntu: apt install" \
      "python$(minor_version "$PYTHON")-dev)"
    return
  done
  echo "no C++ compiler works (tried: ${CXX:-c++ g++ clang++})." \
    "Install one (Debian, Ubuntu: apt install g++), or set CXX"
}

# check_compiler: fail if fairseq must be compiled, but cannot be.
check_compiler() {
  local missing
  if has_ready_fairseq; then return; fi
  missing=$(missing_to_compile)
  if [[ -n $missing ]]; then
    die "fairseq must be compiled for Python $(minor_version "$PYTHON"), but $missing. On Linux x86-64, Python 3.12" \
      "needs no compiler: make setup PYTHON=/path/to/python3.12"
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
