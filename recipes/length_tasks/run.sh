#!/usr/bin/env bash
# Train small models on tasks such as copying, counting, adding and retrieving, and test them on lengths that occur in
# training and on greater lengths. All examples are generated from a random seed, so nothing is downloaded.
#   recipes/length_tasks/run.sh --tasks copy,reverse,addition --pos-enc none,alibi,rope,fire --seeds 1,2,3
#   recipes/length_tasks/run.sh --tasks recall --pos-enc rope,rope-random --random-range 512
#   recipes/length_tasks/run.sh --tasks copy --longest.copy 20 --tested 1,2,5 --decoder.max-update 5000
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
tasks=copy                # tasks to learn [list copy|reverse|sort|parity|reverse-tags|sort-tags|addition|addition-reversed|addition-hints|flip-flop|recall|passkey|scan-length|scan-template|pcfg]
once=''                   # further encodings, which are trained with the first seed only
random_range=512          # NAME-random in pos_enc draws the positions in training from 0 to N-1 (Ruoss et al. 2023) [int 1..]
tested=1,2                # lengths of the test examples, as multiples of the maximum length in training, such as 1/2,1,3/2,2
example_seed=1            # random seed of the examples [int]
longest=()                # --longest.TASK N: maximum length of a training example of a task
rows=()                   # --rows.SPLIT N: examples of train, valid, within and beyond (of these two, for each length)
decoder=()                # --decoder.FLAG VALUE: flag of fairseq-train for decoders; flags of --train win
encoder=()                # --encoder.FLAG VALUE: the same for encoders, which tag each token
encoder_decoder=()        # --encoder-decoder.FLAG VALUE: the same for models with an encoder and a decoder
options "$@"

# --- for each task: the kind of its model and the numbers of its examples; for each encoding also those of its stacks
checked=$(python -m recipes.length_tasks.check --tasks "$tasks" --pos-enc "$pos_enc${once:+,$once}" --tested "$tested" \
  "${longest[@]}" "${rows[@]}") || exit
declare -A kinds stacks sizes chains
while read -r task label kind encodings size; do
  kinds[$task]=$kind stacks[$task:$label]=$encodings sizes[$task]=$size
done <<<"$checked"

# --- examples; a model depends on those of its own task only
begun=$chain
for task in ${tasks//,/ }; do
  chain=$begun && read -ra size <<<"${sizes[$task]}"
  step "examples:$task" "$output/data/$task" python -m recipes.length_tasks.generate --task "$task" \
    --seed "$example_seed" "${size[@]}" --output "$output/data/$task"
  chains[$task]=$chain
done

# --- models
model() { # NAME ENCODING SEED TASK
  local name=$1 label=$2 seed=$3 task=$4 pos && mapfile -t pos < <(encoding "${stacks[$4:$2]}")
  local -n of_kind=${kinds[$task]//-/_}
  [[ $label != *-random ]] || pos+=(--pos-enc-random "$random_range")
  chain=${chains[$task]}
  train "$name" "$output/data/$task" "${PLUGIN[@]}" "${PLAIN[@]}" --task posenc_answers --criterion cross_entropy \
    "${pos[@]}" "${of_kind[@]}" "${train[@]}" --seed "$seed" --log-interval 100 --no-epoch-checkpoints
}
read -ra items <<<"${tasks//,/ }"
models model "${items[@]}"
[[ -z $once ]] || pos_enc=$once seeds=${seeds%%,*} models model "${items[@]}"

# --- scores, figures and tables of all models
device_step evaluate - python -m recipes.length_tasks.evaluate --run "$output" --models "${finished[@]}"
step figures "$output/lengths.png" python -m recipes.length_tasks.drawing --run "$output" --models "${finished[@]}"
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric beyond --metric within
