#!/usr/bin/env bash
# Prepare SQuAD (Rajpurkar et al. 2016, 2018) or your own questions. With --checkpoint, they are tokenised for that
# model and for fine-tuning on answers (recipes/finetune_squad). Without it, they are prepared for question generation.
set -euo pipefail
NAME=squad
USAGE="prepare_squad.sh [OPTION...]

Questions with the answer and the paragraph that they are made from: 87,599 of training and 10,570 of validation in
version 1.1; there is no published test. In version 2.0 some have no answer: question generation leaves those out and
counts them.

For fine-tuning on answers, in windows of a pretrained model's pieces (all other options go to prepare_spans.py):
  prepare_squad.sh --checkpoint results/pretrain_mlm/wiki.posenc_roberta_tiny.128.1/checkpoints/m4/checkpoint_last.pt
  prepare_squad.sh --checkpoint bert-base-uncased --separators 1 --version 2.0 --longest 512 --output data-bin/bert-2.0
  prepare_squad.sh --checkpoint my-checkpoint.pt --text my-folder --bad skip

For question generation:
  prepare_squad.sh --bad repair
  prepare_squad.sh --tokenizer-path bert-base-cased --bad repair --workers 8
  prepare_squad.sh --version 2.0 --context sentence --bad skip
  prepare_squad.sh --text my-questions.json --output data-bin/mine

  prepare_squad.sh --fetch-only --version 2.0

  --checkpoint MODEL   whose pieces, for fine-tuning: of fairseq's, or a Hugging Face folder. Then --output is
                       data-bin/squad-spans, --text is a folder with {train,dev}.json or {train,dev}-v1.1.json, plain or
                       .gz, or a lone json, split by article, 8:2
  --version 1.1|2.0    of SQuAD (1.1); with --text only beside --checkpoint
  --fetch-only         prepare nothing"
# shellcheck source=data-bin-scripts/questions/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/questions/prepare.sh"
version='' fetch_only='' words=()
while (($#)); do
  case $1 in
    --version=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --version)
      [[ ${2-} == 1.1 || ${2-} == 2.0 ]] || fail "--version is ${2-nothing}: 1.1 or 2.0 is wanted"
      version=$2 && shift 2
      ;;
    --fetch-only) fetch_only=1 && shift ;;
    *) words+=("$1") && shift ;;
  esac
done
answers=''
if has --checkpoint "${words[@]}"; then
  answers=1
  for word in --train --eval --set --data; do
    ! has "$word" "${words[@]}" || fail "$word: give your own files to prepare_spans.py, or a folder with --text"
  done
fi
start_questions "${words[@]}"
[[ -n $answers || -z $version || ${#text[@]} == 0 ]] || fail "--version is of what is fetched: leave it out with --text"
version=${version:-1.1}
[[ -z $fetch_only || ${#text[@]} == 0 ]] || fail "--fetch-only: --text is yours already"
[[ -z $fetch_only || ${#rest[@]} == 0 ]] || fail "--fetch-only prepares nothing: leave out ${rest[*]}"

fetch '' "squad/train-v$version.json" "squad/dev-v$version.json"
[[ -z $fetch_only ]] || exit 0
train=$raw/squad/train-v$version.json dev=$raw/squad/dev-v$version.json
if [[ -n $answers ]]; then
  has --output "${words[@]}" || output=data-bin/squad-spans
  given=(--train "$train" --eval "$dev")
  ((${#text[@]} == 0)) || given=(--text "${text[0]}")
  run python "$SCRIPTS/prepare_spans.py" --version "$version" "${given[@]}" --output "$output" "${rest[@]}"
else
  prepare_questions --train "$train" --valid "$dev"
fi
