#!/usr/bin/env bash
# Train word-level language models with Transformer-XL's memory and any position encoding, and compare them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" lm_wikitext103 "$@"
