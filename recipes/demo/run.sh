#!/usr/bin/env bash
# Show how much position encodings improve a translation model, in a few minutes on two cores.
# `recipes/demo/run.sh --help` lists the options. The presets in conf/ hold the settings and the reasons for them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" demo "$@"
