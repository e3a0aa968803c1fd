# shellcheck shell=bash
# Fetch a corpus, then prepare it. The scripts data-bin-scripts/prepare_*.sh set NAME and USAGE and source this file.
# `parse` sets output, raw, text (the values of --text), fetch_from, fetch_limit, text_only, dry_run, and rest (the
# options that it does not know, which go to prepare_corpus.py).

SCRIPTS="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

OPTIONS="
  --output DIR         Folder of the prepared corpus (default: data-bin/$NAME).
  --raw DIR            Folder for the fetched files (default: data/raw).
  --text FILE|DIR      Read your own text of the same kind instead of fetched files. This option can be repeated.
  --fetch-from DIR     Copy the published files from this folder (see fetch.py --from).
  --fetch-limit N      Fetch only N files, or the files that fit into a size such as 500M (see fetch.py --limit).
  --text-only          Fetch the text, print where it is, and prepare nothing.
  --dry-run            Print the commands and run nothing.
All other options go to prepare_corpus.py (see its --help). --tokenizer is required."

fail() {
  echo "error: $*" >&2
  exit 1
}

# shellcheck disable=SC2034  # the sourcing scripts read these variables
parse() {
  output=data-bin/$NAME raw=data/raw text=() fetch_from='' fetch_limit='' text_only='' dry_run='' rest=()
  while (($#)); do
    case $1 in
      -h | --help) echo "$USAGE$OPTIONS" && exit 0 ;;
      --text-only) text_only=1 && shift && continue ;;
      --dry-run) dry_run=1 && shift && continue ;;
      --output=* | --raw=* | --text=* | --fetch-from=* | --fetch-limit=*)
        set -- "${1%%=*}" "${1#*=}" "${@:2}" && continue
        ;;
      --output | --raw | --text | --fetch-from | --fetch-limit)
        (($# > 1)) || fail "$1 needs a value."
        ;;
      *) rest+=("$1") && shift && continue ;;
    esac
    case $1 in
      --output) output=$2 ;;
      --raw) raw=$2 ;;
      --text) text+=("$2") ;;
      --fetch-from) fetch_from=$2 ;;
      --fetch-limit) fetch_limit=$2 ;;
    esac
    shift 2
  done
}

# start ARGUMENT...: parse the arguments and activate the environment.
start() {
  local word
  for word; do
    case $word in -h | --help | --dry-run | --text-only) export POSENC_LOOK_ONLY=1 ;; esac
  done
  parse "$@"
  [[ -n $text_only ]] || has --tokenizer "${rest[@]}" || fail "--tokenizer is required: give gpt2, wordpiece or sentencepiece."
  # shellcheck source=recipes/lib/env.sh
  source "$SCRIPTS/../recipes/lib/env.sh"
}

# has OPTION WORD...: succeed if the option is among the words.
has() {
  local option=$1 word
  shift
  for word; do [[ $word != "$option" && $word != "$option="* ]] || return 0; done
  return 1
}

# run WORD...: run a command, or print it with --dry-run.
run() {
  if [[ -n $dry_run ]]; then
    printf '%q ' "$@" && echo
  else
    "$@"
  fi
}

# fetch LIMIT ARGUMENT...: run fetch.py with these arguments; with --text, fetch nothing.
fetch() {
  local limit=$1
  shift
  ((${#text[@]} == 0)) || return 0
  set -- python "$SCRIPTS/fetch.py" "$@" --output "$raw" ${limit:+--limit "$limit"} ${fetch_from:+--from "$fetch_from"}
  if [[ -n $dry_run ]]; then run "$@"; else "$@" >&2; fi # stdout is for the paths that --text-only prints
}

# prepare PATH...: prepare the text of --text, otherwise of these paths. Without --valid and --valid-part, 0.5 % of the
# documents become the validation set.
prepare() {
  ((${#text[@]} == 0)) || set -- "${text[@]}"
  if [[ -n $text_only ]]; then
    printf '%s\n' "$@"
    return
  fi
  has --valid "${rest[@]}" || has --valid-part "${rest[@]}" || rest+=(--valid-part 0.005)
  run python "$SCRIPTS/prepare_corpus.py" --train "$@" --output "$output" "${rest[@]}"
}
