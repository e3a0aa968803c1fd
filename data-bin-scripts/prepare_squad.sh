#!/usr/bin/env bash
# SQuAD (Rajpurkar et al. 2016, 2018) for question generation: its train and dev, or your own questions. For fine-tuning
# on answers: --fetch-only, and then prepare_spans.py, as the pieces are those of a model (recipes/finetune_squad).
set -euo pipefail
NAME=squad
USAGE="prepare_squad.sh [OPTION...]

Questions with the answer and the paragraph that they are made from: 87,599 of training and 10,570 of validation in
version 1.1; there is no published test. In version 2.0, those without an answer are left out and counted.

  prepare_squad.sh --bad repair
  prepare_squad.sh --tokenizer-path bert-base-cased --bad repair --workers 8
  prepare_squad.sh --version 2.0 --context sentence --bad skip
  prepare_squad.sh --text my-questions.json --output data-bin/mine

  prepare_squad.sh --fetch-only --version 2.0

  --version 1.1|2.0    of SQuAD (1.1)
  --fetch-only         prepare nothing: prepare_spans.py does it for answers, recipes/finetune_squad both"
# shellcheck source=data-bin-scripts/questions/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/questions/prepare.sh"
version='' fetch_only='' words=()
while (($#)); do
  if [[ $1 == --version ]]; then
    [[ ${2-} == 1.1 || ${2-} == 2.0 ]] || fail "--version is ${2-nothing}: 1.1 or 2.0 is wanted"
    version=$2 && shift 2
  elif [[ $1 == --fetch-only ]]; then
    fetch_only=1 && shift
  else
    words+=("$1") && shift
  fi
done
start_questions "${words[@]}"
[[ -z $version || ${#text[@]} == 0 ]] || fail "--version is of what is fetched: leave it out with --text"
version=${version:-1.1}
[[ -z $fetch_only || ${#text[@]} == 0 ]] || fail "--fetch-only: --text is yours already"
[[ -z $fetch_only || ${#rest[@]} == 0 ]] || fail "--fetch-only prepares nothing: leave out ${rest[*]}"

fetch '' "squad/train-v$version.json" "squad/dev-v$version.json"
[[ -z $fetch_only ]] || exit 0
prepare_questions --train "$raw/squad/train-v$version.json" --valid "$raw/squad/dev-v$version.json"
