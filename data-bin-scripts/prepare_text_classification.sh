#!/usr/bin/env bash
# Download and prepare a task and GloVe for text classification from scratch, as in Qu et al. 2021.
set -euo pipefail
NAME="text-classification"
USAGE="prepare_text_classification.sh [--task imdb|sst2|snli|qnli|qqp|mnli|rte] [OPTION...]

Download the archive of a task, and with --glove published also GloVe's word vectors, and prepare the task.

  prepare_text_classification.sh --task sst2 --glove published
  prepare_text_classification.sh --task imdb --output data-bin/imdb
  prepare_text_classification.sh --data my-folder --text title --label topic --output data-bin/topics

  --task TASK          Published task (default: your own files in --data).
  --data DIR           Folder with the files; nothing is downloaded for the task.
  --glove FILE         Word vectors in GloVe's format; 'published' downloads glove.840B.300d.zip (2.2 GB).
  --output DIR         Folder to write (default: data-bin/$NAME/TASK).
  --raw DIR            Folder for downloads (default: data/raw).
  --fetch-from DIR     Copy the archives from this folder instead of downloading them (fetch.py --from).
  --dry-run            Print the commands without running them.
All other options go to prepare_text_classification.py (see its --help)."
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS='' # USAGE describes all options
task='' data='' glove='' output='' raw=data/raw fetch_from='' dry_run='' rest=() text=()
while (($#)); do
  case $1 in
    -h | --help) echo "$USAGE" && exit 0 ;;
    --dry-run) dry_run=1 && shift && continue ;;
    --task=* | --data=* | --glove=* | --output=* | --raw=* | --fetch-from=*)
      set -- "${1%%=*}" "${1#*=}" "${@:2}" && continue
      ;;
    --task | --data | --glove | --output | --raw | --fetch-from) (($# > 1)) || fail "$1: the option needs a value." ;;
    *) rest+=("$1") && shift && continue ;;
  esac
  case $1 in
    --task) task=$2 ;;
    --data) data=$2 ;;
    --glove) glove=$2 ;;
    --output) output=$2 ;;
    --raw) raw=$2 ;;
    --fetch-from) fetch_from=$2 ;;
  esac
  shift 2
done
case $task in
  imdb) archives=(imdb) place=imdb ;;
  snli) archives=(snli) place=snli ;;
  sst2) archives=(glue/SST-2.zip) place=glue ;;
  rte) archives=(glue/RTE.zip) place=glue ;;
  qnli) archives=(glue/QNLIv2.zip) place=glue ;;
  qqp) archives=(glue/QQP-clean.zip) place=glue ;;
  mnli) archives=(glue/MNLI.zip) place=glue ;;
  '') [[ -n $data ]] || fail "Give --task for a published task, or --data with the folder of your own files." ;;
  *) fail "--task $task: there is no such task. Give imdb, sst2, snli, qnli, qqp, mnli or rte." ;;
esac
[[ -z $dry_run ]] || export POSENC_LOOK_ONLY=1
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

if [[ -n $task && -z $data ]]; then
  if [[ $task == imdb ]]; then # not unpacked, because its 100,000 files are read from the archive
    fetch '' "${archives[@]}" --no-unpack
  else
    fetch '' "${archives[@]}"
  fi
  data=$raw/$place
fi
if [[ $glove == published ]]; then
  fetch '' glove --no-unpack
  glove=$raw/glove/glove.840B.300d.zip
fi
: "${output:=data-bin/$NAME/${task:-$(basename "$data")}}"
run python "$SCRIPTS/prepare_text_classification.py" ${task:+--task "$task"} --data "$data" ${glove:+--glove "$glove"} \
  --output "$output" "${rest[@]}"
