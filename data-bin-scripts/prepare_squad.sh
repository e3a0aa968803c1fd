#!/usr/bin/env bash
# SQuAD (Rajpurkar et al. 2016, 2018) for question generation: its train and dev, or your own questions.
set -euo pipefail
NAME=squad
USAGE="prepare_squad.sh [OPTION...]

Questions with the answer and the paragraph that they are made from: 87,599 of training and 10,570 of validation in
version 1.1; there is no published test. In version 2.0, those without an answer are left out and counted.

  prepare_squad.sh --bad repair
  prepare_squad.sh --tokenizer-path bert-base-cased --bad repair --workers 8
  prepare_squad.sh --version 2.0 --context sentence --bad skip
  prepare_squad.sh --text my-questions.json --output data-bin/mine

  --version 1.1|2.0    of SQuAD (1.1)"
# shellcheck source=data-bin-scripts/questions/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/questions/prepare.sh"
version='' words=()
while (($#)); do
  if [[ $1 == --version ]]; then
    [[ ${2-} == 1.1 || ${2-} == 2.0 ]] || fail "--version is ${2-nothing}: 1.1 or 2.0 is wanted"
    version=$2 && shift 2
  else
    words+=("$1") && shift
  fi
done
start_questions "${words[@]}"
[[ -z $version || ${#text[@]} == 0 ]] || fail "--version is of what is fetched: leave it out with --text"
version=${version:-1.1}

fetch '' "squad/train-v$version.json" "squad/dev-v$version.json"
prepare_questions --train "$raw/squad/train-v$version.json" --valid "$raw/squad/dev-v$version.json"
