# shellcheck shell=bash
# Fetch a corpus, then prepare it. The scripts data-bin-scripts/prepare_*.sh source this file and set NAME and USAGE.
# `parse` sets output, raw, text (of --text), fetch_from, fetch_limit, text_only, dry_run, and rest: the options of
# prepare_corpus.py.

SCRIPTS="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

OPTIONS="
  --output DIR         what is trained on (data-bin/$NAME)
  --raw DIR            what is fetched (data/raw)
  --text FILE|FOLDER   your own text of this kind, instead of fetching it; as often as you like
  --fetch-from FOLDER  copy the published files from a folder of yours (fetch.py --from)
  --fetch-limit N      fetch so many files, or bytes (fetch.py --limit)
  --text-only          stop before pieces are made, and print where the text is
  --dry-run            print the commands
All other options go to prepare_corpus.py (see its --help): --tokenizer is wanted."

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
        (($# > 1)) || fail "$1 wants a value"
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
  [[ -n $text_only ]] || has --tokenizer "${rest[@]}" || fail "--tokenizer gpt2, wordpiece or sentencepiece is wanted"
  # shellcheck source=recipes/lib/env.sh
  source "$SCRIPTS/../recipes/lib/env.sh"
}

has() {
  local wanted=$1 word
  shift
  for word; do [[ $word != "$wanted" && $word != "$wanted="* ]] || return 0; done
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
  if [[ -n $dry_run ]]; then run "$@"; else "$@" >&2; fi # others read what --text-only prints on stdout
}

# prepare PATH...: prepare the text of --text, otherwise of these paths; hold out 0.5 % unless --valid or --valid-part
# is given.
prepare() {
  ((${#text[@]} == 0)) || set -- "${text[@]}"
  if [[ -n $text_only ]]; then
    printf '%s\n' "$@"
    return
  fi
  has --valid "${rest[@]}" || has --valid-part "${rest[@]}" || rest+=(--valid-part 0.005)
  run python "$SCRIPTS/prepare_corpus.py" --train "$@" --output "$output" "${rest[@]}"
}
