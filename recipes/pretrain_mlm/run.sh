#!/usr/bin/env bash
# Pretrain masked language models (BERT or RoBERTa) with any position encoding, and compare them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" pretrain_mlm "$@"
