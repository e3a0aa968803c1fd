#!/usr/bin/env bash
# Fetch a task of GLUE (Wang et al. 2018), or take it from a folder, and prepare it for sentence prediction.
set -euo pipefail
NAME=glue
USAGE="prepare_glue.sh --task TASK --checkpoint MODEL [OPTION...]

CoLA, SST-2, MRPC, STS-B, QQP, MNLI (with the diagnostic set AX), QNLI or RTE, in the pieces of a pretrained model.

  prepare_glue.sh --task MNLI --checkpoint my-run/checkpoints/m4/checkpoint_last.pt
  prepare_glue.sh --task MRPC --checkpoint bert-base-uncased --separators 1 --longest 128
  prepare_glue.sh --task SST-2 --text glue_data --checkpoint my-checkpoint.pt --bad skip

  --output DIR         what is trained on (data-bin/glue/TASK)
  --raw DIR            what is fetched (data/raw)
  --text FOLDER        GLUE's files, not fetched: the task's, or a folder with TASK/
  --fetch-from FOLDER  copy the archives from a folder of yours (fetch.py --from)
  --dry-run            print the commands
All other options go to prepare_glue.py (see its --help)."
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS='' # USAGE lists all options
for word; do
  case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
parse "$@"
((${#text[@]} < 2)) || fail "--text is one folder"
[[ -z $fetch_limit ]] || fail "--fetch-limit: files are fetched whole; --limit takes the first rows"
[[ -z $text_only ]] || fail "--text-only: fetch.py $NAME fetches alone"
! has --data "${rest[@]}" || fail "--data: a folder of your own is named with --text"
task=''
for ((at = 0; at < ${#rest[@]}; at++)); do
  case ${rest[at]} in
    --task) task=${rest[at + 1]-} ;;
    --task=*) task=${rest[at]#*=} ;;
  esac
done
case $task in
  CoLA | SST-2 | STS-B | RTE) archives=("$task.zip") ;;
  QQP) archives=(QQP-clean.zip) ;;
  QNLI) archives=(QNLIv2.zip) ;;
  MNLI) archives=(MNLI.zip AX.tsv) ;;
  MRPC) archives=(msr_paraphrase_train.txt msr_paraphrase_test.txt mrpc_dev_ids.tsv) ;;
  *) fail "--task is ${task:-missing}: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI or RTE is wanted" ;;
esac
[[ $output != data-bin/$NAME ]] || output=data-bin/$NAME/$task
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

fetch '' "${archives[@]/#/glue/}"
run python "$SCRIPTS/prepare_glue.py" --data "${text[0]:-$raw/glue}" --output "$output" "${rest[@]}"
