# shellcheck shell=bash
# Fetch questions, then prepare them. The scripts data-bin-scripts/prepare_{squad,cmrc}.sh source this file and set NAME
# and USAGE. It sets the same variables as corpora/prepare.sh.

# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/../corpora/prepare.sh"
OPTIONS="
  --output DIR         what is trained on (data-bin/$NAME)
  --raw DIR            what is fetched (data/raw)
  --text FOLDER|FILE   your own questions, not fetched: {train,valid,test}.json or src-*.txt with tgt-*.txt; a lone
                       json is split by article, 8:1:1
  --fetch-from FOLDER  copy the published files from a folder of yours (fetch.py --from)
  --dry-run            print the commands
All other options go to prepare_questions.py (see its --help): --tokenizer-path, --bad, --context, --workers, ..."

# start_questions ARGUMENT...: parse the arguments and activate the environment.
start_questions() {
  local word
  for word; do
    case $word in -h | --help | --dry-run) export POSENC_LOOK_ONLY=1 ;; esac
  done
  parse "$@"
  ((${#text[@]} < 2)) || fail "--text is one folder or file"
  [[ -z $fetch_limit ]] || fail "--fetch-limit: files are fetched whole; --limit takes the first questions"
  [[ -z $text_only ]] || fail "--text-only: fetch.py $NAME fetches alone"
  for word in --train --valid --test; do
    ! has "$word" "${rest[@]}" || fail "$word: give your own files to prepare_questions.py, or a folder with --text"
  done
  # shellcheck source=recipes/lib/env.sh
  source "$SCRIPTS/../recipes/lib/env.sh"
}

# prepare_questions ARGUMENT...: prepare the questions of --text, otherwise of the files that the arguments name.
prepare_questions() {
  ((${#text[@]} == 0)) || set -- --text "${text[0]}"
  run python "$SCRIPTS/prepare_questions.py" "$@" --output "$output" "${rest[@]}"
}
