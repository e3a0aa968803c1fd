#!/usr/bin/env bash
# Prepare CMRC 2018 (Cui et al. 2019) or your own Chinese questions for question generation.
set -euo pipefail
NAME=cmrc2018
USAGE="prepare_cmrc.sh [OPTION...]

Prepare the Chinese questions of CMRC 2018. Its dev set becomes the validation set, and its trial set the test set. Text
is split into characters unless --tokenizer-path names a tokenizer. 200 answers of the dev set and 5 of the trial set
are not at the offsets that the files give: --bad repair finds their place, and --bad skip leaves them out.

  prepare_cmrc.sh --bad repair
  prepare_cmrc.sh --tokenizer-path chinese-roberta-wwm-ext --bad repair --workers 8
  prepare_cmrc.sh --text my-questions.json --output data-bin/mine
"
# shellcheck source=data-bin-scripts/questions/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/questions/prepare.sh"
start_questions "$@"
has --tokenizer "${rest[@]}" || has --tokenizer-path "${rest[@]}" || rest+=(--tokenizer chars)
has --language "${rest[@]}" || rest+=(--language zh)

fetch '' cmrc2018/cmrc2018_train.json cmrc2018/cmrc2018_dev.json cmrc2018/cmrc2018_trial.json
files=()
for split in train:train valid:dev test:trial; do
  files+=("--${split%:*}" "$raw/cmrc2018/cmrc2018_${split#*:}.json")
done
prepare_questions "${files[@]}"
