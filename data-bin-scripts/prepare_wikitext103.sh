#!/usr/bin/env bash
# Prepare WikiText-103 (Merity et al. 2017), fetched or from a folder, for fairseq.
set -euo pipefail
NAME=wikitext103
USAGE="prepare_wikitext103.sh [OPTION...]

Prepare WikiText-103 with its published words. The training text must have 267,735 types, including <unk> and <eos>.
Each line ends with <eos>. Train, valid and test have 103,227,021, 217,646 and 245,569 tokens (190 MB compressed, 540 MB
of text).

  prepare_wikitext103.sh
  prepare_wikitext103.sh --text ~/wikitext-103 --output data-bin/wt103
  prepare_wikitext103.sh --text ~/wikitext-2 --types 33278 --output data-bin/wikitext2

  --output DIR         Folder of the binary files (default: data-bin/$NAME).
  --raw DIR            Folder for the fetched files (default: data/raw).
  --text DIR           Folder with wiki.{train,valid,test}.tokens or {train,valid,test}.txt, plain or .gz, which is read
                       instead of fetched files.
  --types N            Number of types that the training text must have (default: 267735); 0 accepts any number.
  --workers N          Number of processes of fairseq-preprocess (default: 1).
  --fetch-from DIR     Copy the archive from this folder (see fetch.py --from).
  --text-only          Prepare the text, print its folder, and write no binary files.
  --dry-run            Print the commands and run nothing."
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS='' # USAGE lists all options
for word; do
  case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
parse "$@"
types=267735 workers=1
set -- "${rest[@]}"
while (($#)); do
  case $1 in
    --types | --workers) [[ ${2-} =~ ^[0-9]+$ ]] || fail "$1 ${2-}: give a whole number." ;;
    *) fail "unknown option $1. See --help." ;;
  esac
  if [[ $1 == --types ]]; then types=$2; else workers=$2; fi
  shift 2
done
((${#text[@]} < 2)) || fail "--text can be given only once, with a folder of train, valid and test."
[[ -z $fetch_limit ]] || fail "--fetch-limit: a part of WikiText-103 has a smaller vocabulary. Leave out --fetch-limit."
[[ -n $dry_run || -n $text_only || ! -e $output ]] || fail "$output exists. Move it, or choose another --output."
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

fetch '' wikitext-103/wikitext-103-v1.zip
from=${text[0]:-$raw/wikitext-103/wikitext-103-v1}
say=run
[[ -z $text_only || -n $dry_run ]] || say=to_stderr
to_stderr() { "$@" >&2; } # stdout is for the folder that --text-only prints
"$say" python "$SCRIPTS/prepare_words.py" --text "$from" --output "$output.text" --types "$types"
if [[ -n $text_only ]]; then
  echo "$output.text"
  exit 0
fi
run rm -rf "$output.partial"
splits=()
for split in train valid test; do splits+=("--${split}pref" "$output.text/$split.txt"); done
# Without --padding-factor 1, fairseq would pad the dictionary with invented words to a multiple of 8.
run fairseq-preprocess --only-source "${splits[@]}" --destdir "$output.partial" --padding-factor 1 --workers "$workers"
run cp "$output.text/counts.json" "$output.partial/"
run mv "$output.partial" "$output"
