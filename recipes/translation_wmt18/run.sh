#!/usr/bin/env bash
# Train translation models with one or several position encodings, and compare them by sacreBLEU.
# `recipes/translation_wmt18/run.sh --help` lists the options; conf/ holds the settings and the reasons for them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" translation_wmt18 "$@"
