#!/usr/bin/env bash
# Translates raw text, a sentence a line, by a model that a run of the recipe trained; fairseq-interactive does the work.
# `recipes/translation_wmt18/translate.sh --help` lists the options.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" translation_wmt18.translate "$@"
