#!/usr/bin/env bash
# Fetch the English part of C4 (Raffel et al. 2020), and prepare shards from it.
set -euo pipefail
NAME=c4_en
USAGE="prepare_c4.sh --tokenizer NAME [OPTION...]

Prepare the English part of C4, 1,024 compressed files of 300 MB; --fetch-limit N fetches only the first N. The
validation set is C4's own. It has eight files; with --fetch-limit, only the first of them is used.

  prepare_c4.sh --fetch-limit 8 --tokenizer sentencepiece --vocabulary 32000 --tasks 8 --workers 8
  prepare_c4.sh --tokenizer gpt2 --tokenizer-path data/raw/gpt2-bpe --tasks 1024 --executor slurm --slurm-partition cpu
  prepare_c4.sh --text-only
"
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
start "$@"
fetch "$fetch_limit" 'c4/c4-train.*' --no-unpack
fetch "${fetch_limit:+1}" 'c4/c4-validation.*' --no-unpack
if ((${#text[@]} == 0)) && ! has --valid "${rest[@]}" && ! has --valid-part "${rest[@]}"; then
  rest+=(--valid "$raw/c4/c4-validation.*")
fi
prepare "$raw/c4/c4-train.*"
