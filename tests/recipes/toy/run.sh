#!/usr/bin/env bash
# Copy a word about: a recipe that needs no fairseq, for the laws over all recipes in tests/recipes/test_laws.py.
#   tests/recipes/toy/run.sh --word hello --pos-enc none,'shaw[clip=4]' --seeds 1,2
source "$(dirname "$0")/../../../recipes/lib/recipe.sh"

preset=smoke              # settings in conf/NAME.sh
corpus=builtin            # builtin, or a folder with words.txt [builtin|DIR]
word=hello                # the word that is copied
repeats=2                 # how often it is copied [int 1..9]
share=0.5                 # part of the points that a model keeps [number 0..1]
tasks=''                  # tasks, separated by commas; each model is trained on each [list upper|lower]
options "$@"

toy=(python "$HERE/toy.py")
text=$output/words.txt
case $corpus in
  builtin) step words "$text" "${toy[@]}" words "$word" "$repeats" "$text" ;;
  *) text=$corpus/words.txt && reads "$text" ;;
esac

model() {
  local name=$1 encoding=$2 seed=$3 task=${4-} pos && mapfile -t pos < <(encoding "$encoding")
  step "learn:$name" "$output/learned/$name" "${toy[@]}" learn "$text" "${pos[1]}" "$seed" "${train[@]}" "$output/learned/$name"
  step "score:$name" "$output/scores/$name.json" "${toy[@]}" score "$output/learned/$name" "$share" "$output/scores/$name.json"
}
mapfile -t items < <(split "$tasks")
models model "${items[@]}"
step report "$output/results.md" python -c "open(\"$output/results.md\",\"w\").write(\"x\")"  --run "$output" --metric points
[[ -n $dry_run ]] || cat "$output/results.md"
