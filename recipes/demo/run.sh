#!/usr/bin/env bash
# Show in minutes, on two cores, what a position encoding does for translation.
# `recipes/demo/run.sh --help` lists the options; conf/ holds the settings and the reasons for them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" demo "$@"
