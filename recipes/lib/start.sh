#!/usr/bin/env bash
# start.sh RECIPE [OPTION...]: the command line of a recipe, in the right environment. Every run.sh calls it.
set -euo pipefail
recipe=$1
shift

# To look at a recipe takes Python alone: neither torch nor fairseq, nor `make setup`.
for word; do
  case $word in -h | --help | --list | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
# shellcheck source=recipes/lib/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

export PYTHONPATH="$POSENC_ROOT${PYTHONPATH:+:$PYTHONPATH}"
for python in python python3 python3.11; do
  # -P: a folder `recipes` where the user stands is not this one. Older Pythons do not know it.
  if "$python" -P -c '' 2>/dev/null; then exec "$python" -P -m "recipes.$recipe" "$@"; fi
done
echo "error: no Python 3.11 or newer: install it, then run 'make setup'" >&2
exit 1
