#!/usr/bin/env bash
# Prepare tasks of XTREME (Hu et al. 2020), whose models train on English and are scored in other languages: XNLI
# (Conneau et al. 2018), and the questions of XQuAD (Artetxe et al. 2020), MLQA (Lewis et al. 2020) and TyDiQA-GoldP
# (Clark et al. 2020), for which models train on SQuAD 1.1.
set -euo pipefail
NAME=xtreme
USAGE="prepare_xtreme.sh --task xnli|xquad|mlqa|tydiqa --checkpoint MODEL [OPTION...]

In the pieces of a pretrained model: of xnli MNLI's training rows, and development and test rows in 15 languages (484 MB
packed); of xquad, mlqa and tydiqa the questions in 11, 7 and 9 languages, each a set of its own by its code. What they are
trained on is SQuAD 1.1: prepare_spans.py --train.

  prepare_xtreme.sh --task xnli --checkpoint my-run/checkpoints/shaw/checkpoint_last.pt
  prepare_xtreme.sh --task xnli --text xtreme --train-rows 1500 --checkpoint my-checkpoint.pt
  prepare_xtreme.sh --task mlqa --checkpoint my-checkpoint.pt
  prepare_xtreme.sh --task xquad --text xtreme --languages en,de,zh --checkpoint my-checkpoint.pt

  --output DIR         what is trained on, or answered (data-bin/TASK)
  --raw DIR            what is fetched (data/raw)
  --text FOLDER        the published files or XTREME's, not fetched: in it, or in its xnli/, xquad/, mlqa/ or tydiqa/;
                       xnli is also trained on its MNLI/train.tsv (GLUE's)
  --languages A,B      only these (all that there are); English is always XNLI's development set
  --fetch-from FOLDER  copy the archives from a folder of yours (fetch.py --from)
  --dry-run            print the commands
All other options go to prepare_glue.py of xnli, otherwise to prepare_spans.py (see their --help)."
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS='' # USAGE lists all options
for word; do
  case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
parse "$@"
# read --task and --languages, which determine what is fetched, from the other options
task='' languages='' options=()
set -- "${rest[@]}"
while (($#)); do
  case $1 in
    --task=* | --languages=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" && continue ;;
    --task) task=${2-} ;;
    --languages) languages=${2-} ;;
    *) options+=("$1") && shift && continue ;;
  esac
  (($# > 1)) || fail "$1 wants a value"
  shift 2
done
task=${task,,}
[[ $task =~ ^(xnli|xquad|mlqa|tydiqa)$ ]] || fail "--task is ${task:-missing}: xnli, xquad, mlqa or tydiqa is wanted"
[[ $output != "data-bin/$NAME" ]] || output=data-bin/$task
((${#text[@]} < 2)) || fail "--text is one folder"
[[ -z $fetch_limit ]] || fail "--fetch-limit: files are fetched whole; --limit takes the first rows"
[[ -z $text_only ]] || fail "--text-only: fetch.py $task fetches alone"
! has --data "${options[@]}" || fail "--data: a folder of your own is named with --text"
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

case $task in
  xnli) archives=(xnli/XNLI-1.0.zip xnli/XNLI-MT-1.0.zip) ;;
  xquad)
    archives=(xquad)
    [[ -z $languages ]] || IFS=, read -ra archives <<<"${languages//,/.json,}.json"
    [[ -z $languages ]] || archives=("${archives[@]/#/xquad/xquad.}")
    ;;
  mlqa) archives=(mlqa/MLQA_V1.zip) ;;
  tydiqa) archives=(tydiqa/tydiqa-goldp-v1.1-dev.tgz) ;;
esac
fetch '' "${archives[@]}"
where=(--data "${text[0]:-$raw}" --output "$output")
options=(${languages:+--languages "$languages"} "${options[@]}")
if [[ $task == xnli ]]; then
  run python "$SCRIPTS/prepare_glue.py" "${where[@]}" --task XNLI "${options[@]}"
else
  run python "$SCRIPTS/prepare_spans.py" "${where[@]}" --set "$task" "${options[@]}"
fi
