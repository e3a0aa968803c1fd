#!/usr/bin/env bash
# Builds .venv. Usage: setup_env.sh [demo|full]   (demo leaves the test tools and oracles out)
# PYTHON=... chooses the interpreter. A torch that it has, or that .venv has, is kept whatever its version.
# Run again it does nothing, unless the pins, setup.py or these scripts changed.
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

# What an environment is built from. The place counts: scripts in .venv/bin hold absolute paths.
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

# The last thing done, and by rename: an interrupted install is never taken for a finished one.
mark_ready() {
  fingerprint >"$VENV/.ready.tmp"
  mv "$VENV/.ready.tmp" "$VENV/.ready-$LEVEL"
}

# python_of_venv CODE: nothing when there is no working .venv.
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
    die ".venv has Python $have, PYTHON=$PYTHON is $want: run 'make clean-env' first"
  fi
  if [[ -n $have && -f $VENV/.place && $(<"$VENV/.place") != "$ROOT" ]]; then
    echo "  .venv was built in another place ($(<"$VENV/.place")): building it anew"
    rm -rf "$VENV"
  fi
  # Whatever an interrupted or outdated venv left behind is no use; a working one is completed.
  if [[ -z $(python_of_venv "$VERSION") ]]; then
    step "virtual environment" "$PYTHON" -m venv --clear "$VENV"
  elif [[ -z $(python_of_venv 'import pip; print(1)') ]]; then
    step "virtual environment" "$VENV/bin/python" -m ensurepip
  fi
  echo "$ROOT" >"$VENV/.place"
}

# keep_torch: links the torch of $PYTHON unless .venv has one, then pins whatever is there.
keep_torch() {
  local site torch
  if [[ -z $(python_of_venv "$TORCH_VERSION") ]]; then
    site=$(python_of_venv 'import sysconfig; print(sysconfig.get_path("purelib"))')
    torch=$("$PYTHON" "$LIB/link_torch.py" "$site")
    if [[ -n $torch ]]; then echo "  keeping the $torch of $PYTHON"; fi
  fi
  pin_present torch torchaudio
}

# pin_present NAME...: the constraints, with the lines of these packages as .venv has them.
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

# pip_install ARGS...: within the pins, and never isolated: a build in isolation fetches a second torch.
pip_install() {
  "$VENV/bin/python" -m pip install --no-build-isolation --constraint "$PINS" "$@"
}

install_all() {
  local extra="recipes" kept
  if [[ $LEVEL == full ]]; then extra="test"; fi
  step "pip" pip_install --upgrade pip
  step "build tools" pip_install setuptools wheel cython numpy
  kept=$(python_of_venv "$TORCH_VERSION")
  if [[ -z $kept ]]; then step "torch (a large download)" pip_install torch; fi
  kept=$(python_of_venv "$TORCH_VERSION")
  step "fairseq and fastBPE (compiled)" pip_install fairseq-fixed fastBPE
  step "fairseq_posenc with [${extra}]" pip_install --editable "${ROOT}[${extra}]"
  if [[ $(python_of_venv "$TORCH_VERSION") != "$kept" ]]; then
    die "torch $kept was replaced while installing; see $LOG"
  fi
  # From elsewhere: proves that the package is found through its installation. So it must be from the folder with
  # this clone too, where the clone itself may be taken for the package; that folder comes after torch and fairseq,
  # because it may hold anything.
  cd /
  local first_import='import sys, torch, fairseq; sys.path.insert(0, sys.argv[1]); from fairseq_posenc import load'
  step "first import" "$VENV/bin/python" -c "$first_import" "$(dirname "$ROOT")"
}

# Where flock is missing (macOS) two installs at once are the user's to avoid.
take_lock() {
  if command -v flock >/dev/null; then
    exec 9>"$ROOT/.setup.lock"
    flock -n 9 || { echo "  waiting for another setup of this checkout" && flock 9; }
  fi
}

main() {
  case $LEVEL in demo) is_ready demo full && return ;; full) is_ready full && return ;;
    *) die "unknown level '$LEVEL': demo or full" ;; esac
  ASKED_PYTHON=${PYTHON:-}
  # The user's settings for other environments must not redirect this one.
  unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX
  export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
  pick_python
  check_python
  check_compiler
  # Measured: 1.7 GB with a CPU build of torch, which takes 0.8 of them; pip needs as much again for a while.
  if has_torch; then check_space 2000; else check_space 4000; fi
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
