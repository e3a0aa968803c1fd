#!/usr/bin/env bash
# here.sh [NAME=VALUE...] COMMAND [ARGUMENT...]: run a command as a recipe runs it, from whatever folder you are in.
# The command gets the environment of the recipes, runs in the root of the repository and reads standard input.
set -euo pipefail
# shellcheck source=recipes/lib/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$POSENC_ROOT"
exec env "$@"
