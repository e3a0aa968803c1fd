#!/usr/bin/env bash
# Fetch, clean and count WMT18 (Bojar et al. 2018) for the translation recipe, or prepare your own text in the same way.
set -euo pipefail
NAME=wmt18
USAGE="prepare_wmt18.sh --pair en-de|en-cs [OPTION...]

Europarl v7, Common Crawl and News Commentary v13 to train on, newstest2013 to 2017 for development, newstest2018 as
the test set. Both directions of a pair are trained from one folder. 1.7 GB packed.

  prepare_wmt18.sh --pair en-de --workers 8
  prepare_wmt18.sh --pair en-cs --corpus news-commentary-v13 --limit 50000 --output data/trial
  prepare_wmt18.sh --pair en-de --newstest sacrebleu --valid newstest2017 --language-id
  prepare_wmt18.sh --pair en-de --text ~/mine/train --newstest ~/newstests --test newstest2017 --valid newstest2016
  prepare_wmt18.sh --pair en-de --data-bin data-bin/wmt18.en-de --subwords fastbpe --separate

  --pair en-de|en-cs   the languages"
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS="
  --output DIR         train, valid and test, raw text, with report.md (data/wmt18.PAIR)
  --raw DIR            what is fetched (data/raw)
  --corpus NAME        europarl-v7, commoncrawl or news-commentary-v13, as often as you like (all)
  --text PREFIX        your own PREFIX.en and PREFIX.de to train on, not fetched; as often as you like
  --newstest FOLDER    your own test sets, sgm or lines, not fetched; or sacrebleu: fetched and kept by sacreBLEU
  --valid SET...       (newstest2013 ... newstest2017)
  --test SET...        (newstest2018)
  --fetch-from FOLDER  copy the published files from a folder of yours (fetch.py --from)
  --sources FILE       another list of files (fetch.py --sources)
  --data-bin DIR       make it binary, too, as the recipe does; with --subwords sentencepiece|fastbpe, --separate,
                       --vocabulary N, ... (see binarise_parallel.py --help)
  --dry-run            print the commands
All other options go to prepare_parallel.py (see its --help): --limit, --workers, --ratio, --language-id, ..."
for word; do
  case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
parse "$@"

# archive that holds each corpus
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
      (($# > 1)) || fail "$1 wants a value"
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
      [[ -n ${archives[$2]-} ]] || fail "--corpus $2: europarl-v7, commoncrawl or news-commentary-v13 is wanted"
      corpora+=("$2")
      ;;
    *) binary+=("$1" "$2") ;;
  esac
  shift 2
done
[[ $pair == en-de || $pair == en-cs ]] || fail "--pair is ${pair:-not given}: en-de or en-cs is wanted"
[[ -z $fetch_limit ]] || fail "--fetch-limit: archives are fetched whole; --limit reads the first pairs, --corpus takes one"
[[ -z $text_only ]] || fail "--text-only: text is all that is made without --data-bin"
[[ -n $data_bin || ${#binary[@]} == 0 ]] || fail "${binary[0]} is for --data-bin; the recipe has options of its own"
((${#text[@]} == 0 || ${#corpora[@]} == 0)) || fail "--corpus is of what is fetched: leave it out with --text"
[[ $output != "data-bin/$NAME" ]] || output=data/$NAME.$pair
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

((${#text[@]} || ${#corpora[@]})) || corpora=(europarl-v7 commoncrawl news-commentary-v13)
wanted=() train=("${text[@]}") text=() # `fetch` skips everything if text is set, but test sets are still fetched
for corpus in "${corpora[@]}"; do
  wanted+=("$NAME/${archives[$corpus]}.tgz")
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
  wanted+=("$NAME/dev.tgz" "$NAME/test.tgz") && newstest=$raw/$NAME
fi
((${#wanted[@]} == 0)) || fetch '' "${wanted[@]}" ${sources:+--sources "$sources"}
prepare_text
[[ -z $data_bin ]] || run python "$SCRIPTS/binarise_parallel.py" --text "$output" --output "$data_bin" \
  "${binary[@]}" "${workers[@]}"
