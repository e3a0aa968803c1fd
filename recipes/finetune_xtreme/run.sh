#!/usr/bin/env bash
# Fine-tune pretrained masked language models on English, and score them on XNLI or questions in other languages.
# `recipes/finetune_xtreme/run.sh --help` lists the options; conf/ holds the settings and the reasons for them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" finetune_xtreme "$@"
