#!/usr/bin/env bash
# Translate raw text, one sentence per line, with a model of a run of the recipe; models.tsv in the run lists the models.
#   recipes/translation_wmt18/translate.sh results/mine en-de.rope.s1 < text.en > text.de
# An empty line stays empty. The translation of a line that is too long for the model is empty, too.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
(($# == 2)) || { sed -n '2,4s/^# //p' "$0" >&2 && exit 2; }
[[ -f $1/settings.sh ]] || { echo "error: $1: this folder has no run of the recipe." >&2 && exit 2; }
source "$ROOT/recipes/lib/env.sh" && source "$ROOT/recipes/translation_wmt18/places.sh"
# shellcheck source=/dev/null
source "$1/settings.sh" # of the run, except the place of its folder
output=$(realpath -- "$1")
place "$(awk -F '\t' -v name="$2" '$1 == name {print $4}' "$1/models.tsv")" && model=$(checkpoint "$2")
[[ -f $model ]] || { echo "error: $2: $model does not exist. Models: $(cut -f 1 "$1/models.tsv" | paste -sd ' ')" >&2 && exit 2; }

text=$(mktemp) && trap 'rm -f "$text" "$text.out"' EXIT
cat >"$text" && echo >"$text.out"
export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
{ LC_ALL=C grep '[^[:space:]]' "$text" || true; } | fairseq-interactive "$folder/data-bin" --user-dir "$ROOT/fairseq_posenc" "${decoding[@]}" \
  --path "$model" --skip-invalid-size-inputs-valid-test --distributed-world-size 1 --buffer-size 64 >>"$text.out"
LC_ALL=C awk -F '\t' 'NR == FNR {if (/^D-/) translation[substr($1, 3)] = $3; next}
  {print /[^[:space:]]/ ? translation[n++ ""] : ""}' "$text.out" "$text"
