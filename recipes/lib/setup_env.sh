#!/usr/bin/env bash
# Build .venv. Usage: setup_env.sh [demo|full|docs]   (`demo` leaves out the test tools and the reference
# implementations; `docs` adds what `make docs` needs)
# PYTHON=... chooses the interpreter. If it or .venv already has torch, that torch is kept, whatever its version.
# A second run does nothing, unless the pinned versions, setup.py or these scripts changed.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
LIB="$ROOT/recipes/lib"
VENV="$ROOT/.venv"
LOG="$ROOT/.setup.log"
LEVEL=${1:-full}
PINS="$VENV/constraints.txt"
# shellcheck source=recipes/lib/setup_log.sh
source "$LIB/setup_log.sh"
# shellcheck source=recipes/lib/setup_checks.sh
source "$LIB/setup_checks.sh"

# fingerprint: print what the environment is built from, and its path, because scripts in .venv/bin contain the path.
fingerprint() {
  echo "$ROOT"
  cksum <"$ROOT/setup.py"
  cat "$LIB"/constraints.txt "$LIB"/setup_*.sh "$LIB"/link_torch.py | cksum
}

is_ready() {
  local level
  for level in "$@"; do
    if [[ -f $VENV/.ready-$level && -x $VENV/bin/python ]] &&
      [[ $(<"$VENV/.ready-$level") == "$(fingerprint)" ]]; then return 0; fi
  done
  return 1
}

# mark_ready: finish the setup by renaming a file, so that an interrupted setup never counts as finished.
mark_ready() {
  fingerprint >"$VENV/.ready.tmp"
  mv "$VENV/.ready.tmp" "$VENV/.ready-$LEVEL"
}

# python_of_venv CODE: run the code with the Python of .venv; print nothing if .venv does not work.
python_of_venv() { "$VENV/bin/python" -c "$1" 2>/dev/null || true; }

readonly VERSION='import sys; print(sys.version.split()[0])'
readonly TORCH_VERSION='from importlib.metadata import version; print(version("torch"))'

has_torch() {
  [[ -n $(python_of_venv "$TORCH_VERSION") ]] || "$PYTHON" -c "$TORCH_VERSION" >/dev/null 2>&1
}

create_venv() {
  local have want
  have=$(python_of_venv "$VERSION")
  want=$("$PYTHON" -c "$VERSION")
  if [[ -n $have && ${have%.*} != "${want%.*}" && -n ${ASKED_PYTHON:-} ]]; then
    die ".venv has Python $have, but PYTHON=$PYTHON has $want. Run 'make clean-env' first."
  fi
  if [[ -n $have && -f $VENV/.place && $(<"$VENV/.place") != "$ROOT" ]]; then
    echo "  .venv was built in another folder ($(<"$VENV/.place")); building it again"
    rm -rf "$VENV"
  fi
  # Delete a .venv that does not work; complete one that works.
  if [[ -z $(python_of_venv "$VERSION") ]]; then
    step "virtual environment" "$PYTHON" -m venv --clear "$VENV"
  elif [[ -z $(python_of_venv 'import pip; print(1)') ]]; then
    step "virtual environment" "$VENV/bin/python" -m ensurepip
  fi
  echo "$ROOT" >"$VENV/.place"
}

# keep_torch: link the torch of $PYTHON unless .venv has torch, then pin the version that .venv has.
keep_torch() {
  local site torch
  if [[ -z $(python_of_venv "$TORCH_VERSION") ]]; then
    site=$(python_of_venv 'import sysconfig; print(sysconfig.get_path("purelib"))')
    torch=$("$PYTHON" "$LIB/link_torch.py" "$site")
    if [[ -n $torch ]]; then echo "  using the installed $torch of $PYTHON"; fi
  fi
  pin_present torch torchaudio
}

# pin_present NAME...: write the constraints, with the versions that .venv has of these packages.
pin_present() {
  local name version
  cp "$LIB/constraints.txt" "$PINS"
  for name in "$@"; do
    version=$(python_of_venv "${TORCH_VERSION//torch/$name}")
    if [[ -n $version ]]; then
      grep -v "^$name==" "$PINS" >"$PINS.tmp"
      echo "$name==$version" >>"$PINS.tmp"
      mv "$PINS.tmp" "$PINS"
    fi
  done
}

# pip_install ARGS...: install with the pinned versions. Isolated builds are off, because they download a second torch.
# To compile all 18,000 modules would take 40 seconds, so the imports below compile the 3,600 that every command needs.
pip_install() {
  "$VENV/bin/python" -m pip install --no-build-isolation --no-compile --constraint "$PINS" "$@"
}

# compile_meanwhile MODULE: import the module in the background. The first import of fairseq compiles 3,600 modules, one
# after another; in the meantime, pip can install other packages. If this fails, the step "first import" reports it.
compile_meanwhile() {
  wait
  "$VENV/bin/python" -c "import $1" >>"$LOG" 2>&1 </dev/null &
}

install_all() {
  local extra torch
  case $LEVEL in demo) extra=recipes ;; full) extra="test" ;; docs) extra=docs ;; esac
  step "pip" pip_install --upgrade pip
  step "build tools" pip_install setuptools wheel cython numpy
  torch=$(python_of_venv "$TORCH_VERSION")
  if [[ -z $torch ]]; then step "torch (a large download)" pip_install torch; fi
  torch=$(python_of_venv "$TORCH_VERSION")
  compile_meanwhile torch._dynamo
  step "fairseq" pip_install fairseq-fixed
  compile_meanwhile fairseq_cli.train
  step "fairseq_posenc with [${extra}]" pip_install --editable "${ROOT}[${extra}]"
  if [[ $LEVEL == full ]]; then install_fastbpe; fi
  if [[ $(python_of_venv "$TORCH_VERSION") != "$torch" ]]; then
    die "pip replaced torch $torch by another version. The full log is $LOG"
  fi
  # Import the package from another folder, to test that its installation is found. The import must also work from the
  # parent folder of this clone, where Python could mistake the clone for the package. That folder is added to the path
  # after the import of torch and fairseq, because it may contain other modules of these names.
  cd /
  wait
  local first_import='import sys, torch._dynamo, fairseq_cli.train
sys.path.insert(0, sys.argv[1])
from fairseq_posenc import load'
  step "first import" "$VENV/bin/python" -c "$first_import" "$(dirname "$ROOT")"
}

# install_fastbpe: compile fastBPE if possible. Few users need it, so the setup goes on without it.
install_fastbpe() {
  local missing
  missing=$(missing_to_compile)
  if [[ -z $missing ]] && attempt "fastBPE (compiled)" pip_install fastBPE; then return; fi
  echo "  note: fastBPE is left out, because ${missing:-it could not be compiled (see $LOG)}." \
    "Only --tokenizer fastbpe and --bpe fastbpe need it."
}

# take_lock: wait for another setup. macOS has no flock; there, users must not run two setups at the same time.
take_lock() {
  if command -v flock >/dev/null; then
    exec 9>"$ROOT/.setup.lock"
    flock -n 9 || { echo "  waiting for another setup of this checkout" && flock 9; }
  fi
}

main() {
  case $LEVEL in demo) is_ready demo full && return ;; full | docs) is_ready "$LEVEL" && return ;;
    *) die "unknown level '$LEVEL'. Give demo, full or docs." ;; esac
  ASKED_PYTHON=${PYTHON:-}
  # Variables for the user's other environments must not affect this one.
  unset PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PIP_TARGET PIP_PREFIX
  export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
  pick_python
  check_python
  check_compiler
  # Measured: .venv takes 5.7 GB with the CUDA build of torch that the package index has for Linux (1.9 GB with a CPU
  # build). For a while, pip also needs 2.5 GB for what it downloads.
  if has_torch; then check_space 2200; else check_space 8400; fi
  take_lock
  if is_ready "$LEVEL"; then return; fi
  : >"$LOG"
  echo "Building .venv ($LEVEL) with $PYTHON; details in .setup.log"
  create_venv
  keep_torch
  install_all
  mark_ready
  echo "Environment ready after ${SECONDS}s: .venv (to use it: source .venv/bin/activate)"
}

main
