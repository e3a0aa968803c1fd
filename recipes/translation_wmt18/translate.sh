#!/usr/bin/env bash
# Translate raw text, one sentence per line, with a model of a run of the recipe; fairseq-interactive does the work.
# `recipes/translation_wmt18/translate.sh --help` lists the options.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" translation_wmt18.translate "$@"
