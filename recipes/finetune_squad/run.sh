#!/usr/bin/env bash
# Fine-tune pretrained masked language models on SQuAD, and score them as SQuAD's own scripts do.
# `recipes/finetune_squad/run.sh --help` lists the options; conf/ holds the settings and the reasons for them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" finetune_squad "$@"
