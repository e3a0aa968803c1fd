#!/usr/bin/env bash
# Train small models on tasks such as copying, counting, adding and retrieving, and test them on lengths that occur in
# training and on greater lengths. All examples are generated from a random seed, so nothing is downloaded.
#   recipes/length_tasks/run.sh --tasks copy,reverse,addition --pos-enc none,alibi,rope,fire --seeds 1,2,3
#   recipes/length_tasks/run.sh --tasks recall --pos-enc rope,rope-random --random-range 512
#   recipes/length_tasks/run.sh --tasks copy --longest.copy 20 --tested 1,2,5 --decoder.max-update 5000

# shellcheck disable=SC2034 # `model` reads decoder, encoder and encoder_decoder through the name of the task's kind
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
tasks=copy                # tasks to learn [list copy|reverse|sort|parity|reverse-tags|sort-tags|addition|addition-reversed|addition-hints|flip-flop|recall|passkey|scan-length|scan-template|pcfg]
once=''                   # further encodings, which are trained with the first seed only
random_range=512          # NAME-random in pos_enc draws the positions in training from 0 to N-1 (Ruoss et al. 2023) [int 1..]
tested=1,2                # lengths of the test examples, as multiples of the maximum length in training, such as 1/2,1,3/2,2
example_seed=1            # random seed of the examples [int]
longest=()                # maximum length of a training example of the task FLAG
rows=()                   # number of examples of train, valid, within and beyond (of the last two: for each length)
decoder=()                # flags of fairseq-train for decoders; those of --train win
encoder=()                # flags of fairseq-train for encoders, which tag each token; those of --train win
encoder_decoder=()        # flags of fairseq-train for models with an encoder and a decoder; those of --train win
label_suffix=-random
own=([seed]=--seeds [pos-enc]=--pos-enc [pos-enc-args]=--pos-enc [pos-enc-random]='--pos-enc NAME-random'
  [arch]='--decoder.arch, --encoder.arch or --encoder-decoder.arch' [task]='' [criterion]='' [train-subset]=''
  [valid-subset]='' [tokens-per-sample]=--longest.TASK [max-positions]=--longest.TASK
  [max-source-positions]=--longest.TASK [max-target-positions]=--longest.TASK)
options "$@"
[[ $pos_enc,$once, == *-random,* ]] || no_effect "no encoding in --pos-enc or --once ends with -random" random_range

# --- for each task: the kind of its model, and flags for its examples; for each encoding: those of the model's stacks
mapfile -t chosen < <(split "$pos_enc${once:+,$once}")
checked=$(python -m recipes.length_tasks.check --tasks "$tasks" --pos-enc "${chosen[@]}" --tested "$tested" \
  "${longest[@]/#--/--longest.}" "${rows[@]/#--/--rows.}") || exit
declare -A kind_of label_of sizes_of
while read -r task label kind encodings sizes; do
  kind_of[$task]=$kind sizes_of[$task]=$sizes label_of[$task:$label]=$encodings
done <<<"$checked"

# --- examples; a model depends on those of its own task only
mapfile -t items < <(split "$tasks")
for task in "${items[@]}"; do
  after && read -ra sizes <<<"${sizes_of[$task]}"
  step "examples:$task" "$output/data/$task" python -m recipes.length_tasks.generate --task "$task" \
    --seed "$example_seed" "${sizes[@]}" --output "$output/data/$task"
done

# --- models
model() { # NAME ENCODING SEED TASK
  local name=$1 seed=$3 task=$4 pos && mapfile -t pos < <(encoding "${label_of[$4:$2]}")
  local -n of_kind=${kind_of[$task]//-/_}
  [[ $2 != *-random ]] || pos+=(--pos-enc-random "$random_range")
  after "examples:$task"
  train "$name" "$output/data/$task" "${PLUGIN[@]}" "${PLAIN[@]}" --task posenc_answers --criterion cross_entropy \
    "${pos[@]}" "${of_kind[@]}" "${train[@]}" --seed "$seed" --log-interval 100 --no-epoch-checkpoints
}
models model "${items[@]}"
[[ -z $once ]] || pos_enc=$once seeds=${seeds%%,*} models model "${items[@]}"

# --- scores, figures and tables of all models
device_step evaluate - python -m recipes.length_tasks.evaluate --run "$output"
step figures "$output/lengths.png" python -m recipes.length_tasks.drawing --run "$output"
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric beyond --metric within \
  --detail solved --detail updates --baselines "$HERE/published.json" --note "within and beyond: percentage of test \
examples in which the model predicts all tokens of the output (exact match), for lengths up to the longest one in \
training and for longer ones (scan-template: for commands with a phrase that is missing in training). solved: percentage \
of training runs whose beyond is at least 90. The last checkpoint is scored: nothing is chosen by beyond. NAME-random: \
the positions are drawn at random in training (Ruoss et al. 2023)."
show_results
