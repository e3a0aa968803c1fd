#!/usr/bin/env bash
# Fine-tunes pretrained masked language models on GLUE, and compares encodings by its scores.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" finetune_glue "$@"
