#!/usr/bin/env bash
# Train small translation models with several position encodings, and score their translations with sacreBLEU. The
# sentences are invented, and their meaning depends on word order, so a model without positions (none) must be worse.
#   recipes/demo/run.sh --pos-enc none,shaw,rope --seeds 1,2 --output results/mine
preset=demo # the presets are in recipes/demo/conf, and the settings and steps in recipes/translation_wmt18/run.sh
source "$(dirname "$0")/../translation_wmt18/run.sh"
[[ $preset == smoke ]] || step claim - python -m recipes.demo.claim --run "$output" --gap 10
