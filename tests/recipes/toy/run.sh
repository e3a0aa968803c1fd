#!/usr/bin/env bash
# Count words in a language of its own: a recipe that trains in milliseconds, for the laws over all recipes.
#   tests/recipes/toy/run.sh --word hello --pos-enc none,'shaw[clip=4]' --seeds 1,2
source "$(dirname "$0")/../../../recipes/lib/recipe.sh"

preset=smoke              # settings in conf/NAME.sh
corpus=builtin            # builtin, or a folder with words.txt [builtin|DIR]
word=hello                # word that the built-in text repeats [if corpus=builtin]
repeats=2                 # how often the word is repeated [int 1..9]
share=0.5                 # part of the points that count [number 0..1]
tasks=''                  # tasks, separated by commas: a model is trained on each of them [list upper|lower]
stacks=(encoder) own=([text]=--corpus)
options "$@"
PATH=$HERE/bin:$PATH # fairseq-train of the toy

# --- data
text=$output/words.txt
case $corpus in
  builtin) step words "$text" python "$HERE/toy.py" words --word "$word" --repeats "$repeats" --output "$text" ;;
  *) text=$corpus/words.txt && reads "$text" ;;
esac

# --- a model for each task, encoding and seed
model() {
  local name=$1 seed=$3 pos && mapfile -t pos < <(encoding "$2")
  train "$name" "$text" "${pos[@]}" --seed "$seed" "${train[@]}"
  device_step "score:$name" "$output/scores/$name.json" python "$HERE/toy.py" score --share "$share" \
    --checkpoint "$output/checkpoints/$name/checkpoint_last.json" --output "$output/scores/$name.json"
}
mapfile -t items < <(split "$tasks")
models model "${items[@]}"

# --- all models
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric points --like smoke
show_results
