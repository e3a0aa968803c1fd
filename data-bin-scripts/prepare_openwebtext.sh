#!/usr/bin/env bash
# Fetch OpenWebText (Gokaslan and Cohen 2019), and prepare shards from it.
set -euo pipefail
NAME=openwebtext
USAGE="prepare_openwebtext.sh --tokenizer NAME [OPTION...]

Prepare OpenWebText (13 GB compressed, 38 GB of text). The inner archives are read without unpacking them. Each
document goes to the validation set with a probability of 0.5 % (--valid-part).

  prepare_openwebtext.sh --tokenizer gpt2 --tokenizer-path data/raw/gpt2-bpe --tasks 64 --workers 16
  prepare_openwebtext.sh --fetch-from ~/corpora --tokenizer sentencepiece --vocabulary 32000
  prepare_openwebtext.sh --text-only
"
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
start "$@"
fetch "$fetch_limit" openwebtext
prepare "$raw/openwebtext"
