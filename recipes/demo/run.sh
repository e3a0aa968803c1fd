#!/usr/bin/env bash
# One question, answered in minutes on two cores: what does a position encoding do for a translation?
# `recipes/demo/run.sh --help` lists the options; the settings, with their reasons, are in conf/.
set -euo pipefail
# shellcheck source=recipes/lib/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/env.sh"

# Several trainings run side by side: more than one thread each only makes them wait for each other.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
export PYTHONPATH="$POSENC_ROOT${PYTHONPATH:+:$PYTHONPATH}"
# -P: a folder `recipes` where the user stands is not this one.
exec python -P -m recipes.demo "$@"
