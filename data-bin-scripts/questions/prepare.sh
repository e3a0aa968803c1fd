# shellcheck shell=bash
# Fetch questions, then prepare them. The scripts data-bin-scripts/prepare_{squad,cmrc}.sh set NAME and USAGE and source
# this file. It sets the same variables as corpora/prepare.sh.

# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/../corpora/prepare.sh"
OPTIONS="
  --output DIR         Folder of the prepared questions (default: data-bin/$NAME).
  --raw DIR            Folder for the fetched files (default: data/raw).
  --text DIR|FILE      Read your own questions instead of fetched files: {train,valid,test}.json, or src-*.txt with
                       tgt-*.txt. A single JSON file is split by article, 8:1:1.
  --fetch-from DIR     Copy the published files from this folder (see fetch.py --from).
  --dry-run            Print the commands and run nothing.
All other options go to prepare_questions.py (see its --help): --tokenizer-path, --bad, --context, --workers, ..."

# start_questions ARGUMENT...: parse the arguments and activate the environment.
start_questions() {
  local word
  for word; do
    case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
  done
  parse "$@"
  ((${#text[@]} < 2)) || fail "--text can be given only once, with a folder or a file."
  [[ -z $fetch_limit ]] || fail "--fetch-limit: files are fetched whole. Use --limit N for the first N questions."
  [[ -z $text_only ]] || fail "--text-only is not supported here. To fetch only, run fetch.py $NAME."
  for word in --train --valid --test; do
    ! has "$word" "${rest[@]}" || fail "$word: give your own files to prepare_questions.py, or a folder with --text."
  done
  # shellcheck source=recipes/lib/env.sh
  source "$SCRIPTS/../recipes/lib/env.sh"
}

# prepare_questions ARGUMENT...: prepare the questions of --text, otherwise of the files that the arguments name.
prepare_questions() {
  ((${#text[@]} == 0)) || set -- --text "${text[0]}"
  run python "$SCRIPTS/prepare_questions.py" "$@" --output "$output" "${rest[@]}"
}
