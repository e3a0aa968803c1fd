#!/usr/bin/env bash
# Pretrains masked language models, BERT's and RoBERTa's, with any position encoding, and compares them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" pretrain_mlm "$@"
