#!/usr/bin/env bash
# Train small translation models with several position encodings, and score their translations with sacreBLEU. The
# sentences are invented, and their meaning depends on word order, so a model without positions (none) must be worse.
#   recipes/demo/run.sh --pos-enc none,shaw,rope --seeds 1,2 --output results/mine
preset=demo # the presets are in recipes/demo/conf; the settings and the steps are those of the recipe for translation
source "$(dirname "$0")/../translation_wmt18/run.sh"
[[ -z $dry_run && $preset != smoke && ,$pos_enc, == *,none,* ]] || exit 0 # the preset smoke trains too little

best() { sed -n 's/^ "BLEU": \([0-9.]*\),*$/\1/p' "$@" 2>/dev/null | sort -n | tail -n 1 || true; }
best=$(best "$output"/scores/*.json) none=$(best "$output"/scores/*.none.*.json)
awk -v best="$best" -v none="$none" 'BEGIN {exit !(none > 0 && best >= none + 10)}' ||
  fail "the best encoding has $best BLEU, and none has $none BLEU. The difference must be 10. Look for the cause in $output/results.md and $output/logs."
