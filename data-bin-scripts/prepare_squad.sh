#!/usr/bin/env bash
# Prepare SQuAD (Rajpurkar et al. 2016, 2018) or your own questions: with --checkpoint, for fine-tuning that model on
# question answering (recipes/finetune_squad), otherwise for question generation.
set -euo pipefail
NAME=squad
USAGE="prepare_squad.sh [OPTION...]

Prepare SQuAD, or your own questions in its format. Version 1.1 has 87,599 training and 10,570 validation questions.
SQuAD's test set is not published. In version 2.0, some questions have no answer; question generation leaves them out.

For fine-tuning on question answering, with --checkpoint (all other options go to prepare_spans.py):
  prepare_squad.sh --checkpoint results/pretrain_mlm/wiki.posenc_roberta_tiny.128.1/checkpoints/m4/checkpoint_last.pt
  prepare_squad.sh --checkpoint bert-base-uncased --separators 1 --version 2.0 --longest 512 --output data-bin/bert-2.0
  prepare_squad.sh --checkpoint my-checkpoint.pt --text my-folder --bad skip

For question generation (all other options go to prepare_questions.py):
  prepare_squad.sh --bad repair
  prepare_squad.sh --tokenizer-path bert-base-cased --bad repair --workers 8
  prepare_squad.sh --version 2.0 --context sentence --bad skip
  prepare_squad.sh --text my-questions.json --output data-bin/mine

To fetch the files and prepare nothing:
  prepare_squad.sh --fetch-only --version 2.0

  --checkpoint FILE|DIR
                       Fairseq checkpoint or Hugging Face folder of the model to fine-tune. The default of --output is
                       then data-bin/squad-spans. --text is then a folder with {train,dev}.json or
                       {train,dev}-v1.1.json, plain or .gz, or a single JSON file, which is split by article, 8:2.
  --version 1.1|2.0    Version of SQuAD (default: 1.1). With --text, --version needs --checkpoint.
  --fetch-only         Fetch the files and prepare nothing."
# shellcheck source=data-bin-scripts/questions/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/questions/prepare.sh"
version='' fetch_only='' words=()
while (($#)); do
  case $1 in
    --version=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --version)
      [[ ${2-} == 1.1 || ${2-} == 2.0 ]] || fail "--version ${2-}: give 1.1 or 2.0."
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
    ! has "$word" "${words[@]}" || fail "$word: give your own files to prepare_spans.py, or a folder with --text."
  done
fi
start_questions "${words[@]}"
[[ -n $answers || -z $version || ${#text[@]} == 0 ]] || fail "--version has no effect with --text and without --checkpoint. Leave out --version."
version=${version:-1.1}
[[ -z $fetch_only || ${#text[@]} == 0 ]] || fail "--fetch-only fetches nothing with --text. Leave one of them out."
[[ -z $fetch_only || ${#rest[@]} == 0 ]] || fail "--fetch-only prepares nothing. Leave out ${rest[*]}."

fetch '' "squad/train-v$version.json" "squad/dev-v$version.json"
[[ -z $fetch_only ]] || exit 0
train=$raw/squad/train-v$version.json dev=$raw/squad/dev-v$version.json
if [[ -n $answers ]]; then
  has --output "${words[@]}" || output=data-bin/squad-spans
  files=(--train "$train" --eval "$dev")
  ((${#text[@]} == 0)) || files=(--text "${text[0]}")
  run python "$SCRIPTS/prepare_spans.py" --version "$version" "${files[@]}" --output "$output" "${rest[@]}"
else
  prepare_questions --train "$train" --valid "$dev"
fi
