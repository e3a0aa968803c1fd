#!/usr/bin/env bash
# Fine-tune pretrained masked language models on GLUE, and compare their position encodings.
# `recipes/finetune_glue/run.sh --help` lists the options; conf/ holds the settings and the reasons for them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" finetune_glue "$@"
