#!/usr/bin/env bash
# Translation from raw text to sacreBLEU, with one position encoding or a comparison of several.
# `recipes/translation_wmt18/run.sh --help` lists the options; the settings, with their reasons, are in conf/.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" translation_wmt18 "$@"
