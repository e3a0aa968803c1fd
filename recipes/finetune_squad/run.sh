#!/usr/bin/env bash
# Fine-tunes pretrained masked language models on SQuAD, and scores them as its own scripts do.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" finetune_squad "$@"
