#!/usr/bin/env bash
# Fine-tunes pretrained masked language models on English, and scores them on XNLI or questions in other languages.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" finetune_xtreme "$@"
