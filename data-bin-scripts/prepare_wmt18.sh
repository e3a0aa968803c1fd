#!/usr/bin/env bash
# Fetch and clean WMT18 (Bojar et al. 2018) for the translation recipe: Europarl v7, Common Crawl and News Commentary v13
# (1.7 GB compressed). The validation set is newstest2013 to newstest2017, and the test set newstest2018. One folder
# serves both directions of a pair.
#   prepare_wmt18.sh --pair en-de --workers 8
#   prepare_wmt18.sh --pair en-cs --corpus news-commentary-v13 --limit 50000 --output data/trial
#
#   --pair en-de|en-cs   Language pair (required).
#   --output DIR         Folder for the text of train, valid and test, and for report.md (default: data/wmt18.PAIR).
#   --raw DIR            Folder for the fetched files (default: data/raw).
#   --corpus NAME        One training corpus: europarl-v7, commoncrawl or news-commentary-v13 (default: all three).
# All other options go to prepare_parallel.py (see its --help): --workers, --limit, --ratio, --newstest, ...
set -euo pipefail
fail() { echo "error: $*" >&2 && exit 1; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
declare -A archives=(
  [europarl-v7]=training-parallel-europarl-v7
  [commoncrawl]=training-parallel-commoncrawl
  [news-commentary-v13]=training-parallel-nc-v13
)
declare -A options=([pair]='' [output]='' [raw]=data/raw [corpus]='')
words=(--valid newstest20{13..17} --test newstest2018)
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" && exit ;;
    --pair | --output | --raw | --corpus) options[${1#--}]=${2?$1 needs a value.} && shift 2 ;;
    *) words+=("$1") && shift ;;
  esac
done
pair=${options[pair]} corpora=(europarl-v7 commoncrawl news-commentary-v13)
[[ $pair == en-de || $pair == en-cs ]] || fail "--pair ${pair:-is missing}: give en-de or en-cs."
[[ -z ${options[corpus]} ]] || corpora=("${options[corpus]}")
files=() train=()
for corpus in "${corpora[@]}"; do
  archive=${archives[$corpus]-} && [[ -n $archive ]] || fail "--corpus $corpus: give one of ${!archives[*]}."
  files+=("wmt18/$archive.tgz")
  train+=("${options[raw]}/wmt18/$archive/$corpus.${pair#en-}-en")
done
prepare=(python "$here/prepare_parallel.py" --pair "$pair" --train "${train[@]}" "${words[@]}")
prepare+=(--output "${options[output]:-data/wmt18.$pair}")
"${prepare[@]}" --check # report errors in the options before hours of fetching
python "$here/fetch.py" "${files[@]}" --output "${options[raw]}"
"${prepare[@]}"
