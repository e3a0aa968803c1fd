#!/usr/bin/env bash
# Fetch WikiText-103 (Merity et al. 2017), or take it from a folder, and prepare it for fairseq.
set -euo pipefail
NAME=wikitext103
USAGE="prepare_wikitext103.sh [OPTION...]

Words as published: 267,735 types of the training text (checked, <unk> and <eos> among them), an <eos> at each line,
103,227,021, 217,646 and 245,569 tokens. 190 MB packed, 540 MB of text.

  prepare_wikitext103.sh
  prepare_wikitext103.sh --text ~/wikitext-103 --output data-bin/wt103
  prepare_wikitext103.sh --text ~/wikitext-2 --types 33278 --output data-bin/wikitext2

  --output DIR         what is trained on (data-bin/$NAME)
  --raw DIR            what is fetched (data/raw)
  --text FOLDER        your own wiki.{train,valid,test}.tokens or {train,valid,test}.txt, plain or .gz, not fetched
  --types N            types that the training text must have (267735; 0: any)
  --workers N          processes of fairseq-preprocess (1)
  --fetch-from FOLDER  copy the archive from a folder of yours (fetch.py --from)
  --text-only          stop before it is made binary, and print where the text is
  --dry-run            print the commands"
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
    --types | --workers) [[ ${2-} =~ ^[0-9]+$ ]] || fail "$1 wants a number" ;;
    *) fail "unknown option $1; --help lists them" ;;
  esac
  if [[ $1 == --types ]]; then types=$2; else workers=$2; fi
  shift 2
done
((${#text[@]} < 2)) || fail "--text is one folder, with train, valid and test"
[[ -z $fetch_limit ]] || fail "--fetch-limit: a part of WikiText-103 has another vocabulary: leave it out"
[[ -n $dry_run || -n $text_only || ! -e $output ]] || fail "$output is there: move it, or choose another --output"
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

fetch '' wikitext-103/wikitext-103-v1.zip
from=${text[0]:-$raw/wikitext-103/wikitext-103-v1}
say=run
[[ -z $text_only || -n $dry_run ]] || say=to_stderr
to_stderr() { "$@" >&2; } # others read what --text-only prints on stdout
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
