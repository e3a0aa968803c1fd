#!/usr/bin/env bash
# Fetch and clean WMT18 (Bojar et al. 2018) for the translation recipe, or clean your own text in the same way.
set -euo pipefail
NAME=wmt18
USAGE="prepare_wmt18.sh --pair en-de|en-cs [OPTION...]

Prepare the training text of Europarl v7, Common Crawl and News Commentary v13 (1.7 GB compressed). The validation set
is newstest2013 to newstest2017, and the test set newstest2018. One folder serves both directions of a pair.

  prepare_wmt18.sh --pair en-de --workers 8
  prepare_wmt18.sh --pair en-cs --corpus news-commentary-v13 --limit 50000 --output data/trial
  prepare_wmt18.sh --pair en-de --newstest sacrebleu --valid newstest2017 --language-id
  prepare_wmt18.sh --pair en-de --text ~/mine/train --newstest ~/newstests --test newstest2017 --valid newstest2016
  prepare_wmt18.sh --pair en-de --data-bin data-bin/wmt18.en-de --subwords fastbpe --separate

  --pair en-de|en-cs   Language pair (required)."
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS="
  --output DIR         Folder for the text of train, valid and test, and for report.md (default: data/wmt18.PAIR).
  --raw DIR            Folder for the fetched files (default: data/raw).
  --corpus NAME        Training corpus: europarl-v7, commoncrawl or news-commentary-v13 (default: all three). This
                       option can be repeated.
  --text PREFIX        Train on your own PREFIX.en and PREFIX.de instead of fetched files. This option can be repeated.
  --newstest DIR|sacrebleu
                       Folder with your own test sets, as sgm files or as text with one sentence per line. With the word
                       sacrebleu instead of a folder, sacreBLEU fetches the published sets.
  --valid SET...       Validation sets (default: newstest2013 to newstest2017).
  --test SET...        Test sets (default: newstest2018).
  --fetch-from DIR     Copy the published files from this folder (see fetch.py --from).
  --sources FILE       Another list of published files (see fetch.py --sources).
  --data-bin DIR       Also write fairseq's binary files to this folder, as the recipe does. This option allows
                       --subwords sentencepiece|fastbpe, --separate and --vocabulary N (see binarise_parallel.py
                       --help).
  --dry-run            Print the commands and run nothing.
All other options go to prepare_parallel.py (see its --help): --limit, --workers, --ratio, --language-id, ..."
for word; do
  case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
parse "$@"

# archive of each corpus
declare -A archives=(
  [europarl-v7]=training-parallel-europarl-v7
  [commoncrawl]=training-parallel-commoncrawl
  [news-commentary-v13]=training-parallel-nc-v13
)
pair='' newstest='' sources='' data_bin='' corpora=() words=() binary=() workers=()
set -- "${rest[@]}"
while (($#)); do
  case $1 in
    --pair=* | --newstest=* | --sources=* | --data-bin=* | --corpus=* | --subwords=* | --vocabulary=* | --model-type=* | \
      --longest=* | --character-coverage=* | --workers=*)
      set -- "${1%%=*}" "${1#*=}" "${@:2}" && continue
      ;;
    --separate) binary+=("$1") && shift && continue ;;
    --pair | --newstest | --sources | --data-bin | --corpus | --subwords | --vocabulary | --model-type | --longest | \
      --character-coverage)
      (($# > 1)) || fail "$1 needs a value."
      ;;
    --workers) workers=("${@:1:2}") && words+=("${@:1:2}") && shift "$(($# > 1 ? 2 : 1))" && continue ;;
    *) words+=("$1") && shift && continue ;;
  esac
  case $1 in
    --pair) pair=$2 ;;
    --newstest) newstest=$2 ;;
    --sources) sources=$2 ;;
    --data-bin) data_bin=$2 ;;
    --corpus)
      [[ -n ${archives[$2]-} ]] || fail "--corpus $2: give europarl-v7, commoncrawl or news-commentary-v13."
      corpora+=("$2")
      ;;
    *) binary+=("$1" "$2") ;;
  esac
  shift 2
done
[[ $pair == en-de || $pair == en-cs ]] || fail "--pair ${pair:-is missing}: give en-de or en-cs."
[[ -z $fetch_limit ]] || fail "--fetch-limit: archives are fetched whole. Use --corpus for fewer archives, or --limit for fewer pairs."
[[ -z $text_only ]] || fail "--text-only: without --data-bin, only text is written. Leave out --text-only."
[[ -n $data_bin || ${#binary[@]} == 0 ]] || fail "${binary[0]} needs --data-bin DIR."
((${#text[@]} == 0 || ${#corpora[@]} == 0)) || fail "--corpus has no effect with --text. Leave one of them out."
[[ $output != "data-bin/$NAME" ]] || output=data/$NAME.$pair
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

((${#text[@]} || ${#corpora[@]})) || corpora=(europarl-v7 commoncrawl news-commentary-v13)
files=() train=("${text[@]}") text=() # `fetch` skips everything if text is set, but test sets are still fetched
for corpus in "${corpora[@]}"; do
  files+=("$NAME/${archives[$corpus]}.tgz")
  train+=("$raw/$NAME/${archives[$corpus]}/$corpus.${pair#en-}-en")
done
has --valid "${words[@]}" || words+=(--valid newstest20{13..17})
has --test "${words[@]}" || words+=(--test newstest2018)
prepare_text() {
  run python "$SCRIPTS/prepare_parallel.py" --pair "$pair" --train "${train[@]}" ${newstest:+--newstest "$newstest"} \
    "${words[@]}" --output "$output" "$@"
}
[[ -n $dry_run ]] || prepare_text --check # report errors in the options before hours of fetching
if [[ -z $newstest && " ${words[*]}" == *" newstest20"* ]]; then
  files+=("$NAME/dev.tgz" "$NAME/test.tgz") && newstest=$raw/$NAME
fi
((${#files[@]} == 0)) || fetch '' "${files[@]}" ${sources:+--sources "$sources"}
prepare_text
[[ -z $data_bin ]] || run python "$SCRIPTS/binarise_parallel.py" --text "$output" --output "$data_bin" \
  "${binary[@]}" "${workers[@]}"
