#!/usr/bin/env bash
# Trains language models of words with Transformer-XL's memory, with any position encoding, and compares them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" lm_wikitext103 "$@"
