#!/usr/bin/env bash
# One question, answered in minutes on two cores: what does a position encoding do for a translation?
# `recipes/demo/run.sh --help` lists the options; the settings, with their reasons, are in conf/.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" demo "$@"
