#!/usr/bin/env bash
# Prepare a task of GLUE (Wang et al. 2018), fetched or from a folder, for sentence prediction.
set -euo pipefail
NAME=glue
USAGE="prepare_glue.sh --task TASK --checkpoint FILE|DIR [OPTION...]

Prepare CoLA, SST-2, MRPC, STS-B, QQP, MNLI (with the diagnostic set AX), QNLI or RTE for a pretrained model.

  prepare_glue.sh --task MNLI --checkpoint my-run/checkpoints/m4/checkpoint_last.pt
  prepare_glue.sh --task MRPC --checkpoint bert-base-uncased --separators 1 --longest 128
  prepare_glue.sh --task SST-2 --text glue_data --checkpoint my-checkpoint.pt --bad skip

  --output DIR         Folder of the prepared task (default: data-bin/glue/TASK).
  --raw DIR            Folder for the fetched files (default: data/raw).
  --text DIR           Read the task's files from this folder, or from its subfolder TASK, instead of fetched files.
  --fetch-from DIR     Copy the archives from this folder (see fetch.py --from).
  --dry-run            Print the commands and run nothing.
All other options go to prepare_glue.py (see its --help)."
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS='' # USAGE lists all options
for word; do
  case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
parse "$@"
((${#text[@]} < 2)) || fail "--text can be given only once."
[[ -z $fetch_limit ]] || fail "--fetch-limit: files are fetched whole. Use --limit N for the first N rows."
[[ -z $text_only ]] || fail "--text-only is not supported here. To fetch only, run fetch.py $NAME."
! has --data "${rest[@]}" || fail "--data: give your own folder with --text."
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
  *) fail "--task ${task:-is missing}: give CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI or RTE." ;;
esac
[[ $output != data-bin/$NAME ]] || output=data-bin/$NAME/$task
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

fetch '' "${archives[@]/#/glue/}"
run python "$SCRIPTS/prepare_glue.py" --data "${text[0]:-$raw/glue}" --output "$output" "${rest[@]}"
