#!/usr/bin/env bash
# start.sh RECIPE [OPTION...]: run the command line of a recipe in the right environment. Every run.sh calls it.
set -euo pipefail
recipe=$1
shift

# These options only need Python, without torch, fairseq and `make setup`.
for word; do
  case $word in -h | --help | --list | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
# shellcheck source=recipes/lib/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

export PYTHONPATH="$POSENC_ROOT${PYTHONPATH:+:$PYTHONPATH}"
for python in python python3 python3.12 python3.11; do
  # -P keeps Python from importing a folder `recipes` in the user's folder. Pythons before 3.11 refuse this option.
  if "$python" -P -c '' 2>/dev/null; then exec "$python" -P -m "recipes.$recipe" "$@"; fi
done
echo "error: Python 3.11 or newer was not found. Install it, then run 'make setup'." >&2
exit 1
