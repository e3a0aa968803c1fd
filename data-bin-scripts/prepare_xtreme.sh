#!/usr/bin/env bash
# Prepare tasks of XTREME (Hu et al. 2020), which score models that were trained on English in other languages: XNLI
# (Conneau et al. 2018), XQuAD (Artetxe et al. 2020), MLQA (Lewis et al. 2020) and TyDiQA-GoldP (Clark et al. 2020).
set -euo pipefail
NAME=xtreme
USAGE="prepare_xtreme.sh --task xnli|xquad|mlqa|tydiqa --checkpoint FILE|DIR [OPTION...]

Prepare a task of XTREME for a pretrained model. xnli has the training rows of MNLI, and development and test rows in
15 languages (484 MB compressed). xquad, mlqa and tydiqa have questions in 11, 7 and 9 languages; each language becomes
a split. Models for these three train on SQuAD 1.1, which you prepare with prepare_squad.sh --checkpoint FILE|DIR.

  prepare_xtreme.sh --task xnli --checkpoint my-run/checkpoints/shaw/checkpoint_last.pt
  prepare_xtreme.sh --task xnli --text xtreme --train-rows 1500 --checkpoint my-checkpoint.pt
  prepare_xtreme.sh --task mlqa --checkpoint my-checkpoint.pt
  prepare_xtreme.sh --task xquad --text xtreme --languages en,de,zh --checkpoint my-checkpoint.pt

  --output DIR         Folder of the prepared task (default: data-bin/TASK).
  --raw DIR            Folder for the fetched files (default: data/raw).
  --text DIR           Read the task's published files, or the files that XTREME distributes, from this folder or from
                       its subfolder xnli, xquad, mlqa or tydiqa, instead of fetched files. xnli can also train on GLUE's
                       MNLI/train.tsv in this folder.
  --languages A,B      Languages to prepare (default: all that exist). xnli always includes English for development.
  --fetch-from DIR     Copy the archives from this folder (see fetch.py --from).
  --dry-run            Print the commands and run nothing.
All other options go to prepare_glue.py (xnli) or to prepare_spans.py (xquad, mlqa, tydiqa); see their --help."
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
  (($# > 1)) || fail "$1 needs a value."
  shift 2
done
task=${task,,}
[[ $task =~ ^(xnli|xquad|mlqa|tydiqa)$ ]] || fail "--task ${task:-is missing}: give xnli, xquad, mlqa or tydiqa."
[[ $output != "data-bin/$NAME" ]] || output=data-bin/$task
((${#text[@]} < 2)) || fail "--text can be given only once."
[[ -z $fetch_limit ]] || fail "--fetch-limit: files are fetched whole. Use --limit N for the first N rows."
[[ -z $text_only ]] || fail "--text-only is not supported here. To fetch only, run fetch.py $task."
! has --data "${options[@]}" || fail "--data: give your own folder with --text."
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
