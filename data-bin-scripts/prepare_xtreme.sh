#!/usr/bin/env bash
# XNLI (Conneau et al. 2018), as XTREME takes it: trained on English, scored in 15 languages.
set -euo pipefail
NAME=xnli
USAGE="prepare_xtreme.sh --task XNLI --checkpoint MODEL [OPTION...]

MNLI's training rows, XNLI's development and test rows in ar, bg, de, el, en, es, fr, hi, ru, sw, th, tr, ur, vi and zh, in
the pieces of a pretrained model. 484 MB packed.

  prepare_xtreme.sh --task XNLI --checkpoint results/pretrain_mlm/wiki100/checkpoints/shaw/checkpoint_last.pt
  prepare_xtreme.sh --task XNLI --text xtreme --train-rows 1500 --checkpoint my-checkpoint.pt

  --output DIR         what is trained on (data-bin/xnli)
  --raw DIR            what is fetched (data/raw)
  --text FOLDER        XNLI's or XTREME's files, not fetched: in it, or in its XNLI/ or xnli/
  --fetch-from FOLDER  copy the archives from a folder of yours (fetch.py --from)
  --dry-run            print the commands
All other options go to prepare_glue.py (see its --help)."
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
OPTIONS='' # its own are in USAGE
for word; do
  case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
done
parse "$@"
((${#text[@]} < 2)) || fail "--text is one folder"
[[ -z $fetch_limit ]] || fail "--fetch-limit: files are fetched whole; --limit takes the first rows"
[[ -z $text_only ]] || fail "--text-only: fetch.py $NAME fetches alone"
! has --data "${rest[@]}" || fail "--data: a folder of your own is named with --text"
# shellcheck source=recipes/lib/env.sh
source "$SCRIPTS/../recipes/lib/env.sh"

fetch '' xnli/XNLI-1.0.zip xnli/XNLI-MT-1.0.zip
run python "$SCRIPTS/prepare_glue.py" --data "${text[0]:-$raw}" --output "$output" "${rest[@]}"
