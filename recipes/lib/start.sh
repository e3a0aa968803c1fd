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
python=$(command -v python || command -v python3)
# -P: a folder `recipes` where the user stands is not this one.
exec "$python" -P -m "recipes.$recipe" "$@"
