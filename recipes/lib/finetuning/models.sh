# shellcheck shell=bash disable=SC2034,SC2154
# Functions of the recipes that fine-tune pretrained models: find the models, and list the trainings to try.

own=([lr]=--learning-rates [max-epoch]=--epochs [max-update]=--epochs [total-num-update]=--epochs [warmup-updates]=--warmup
  [lr-scheduler]=--warmup [pretrained]=--pretrained [segments]=--segments [seed]=--seeds [pos-enc]=--pretrained)
# Of each label in pos_enc: the pretrained model, its segments, and the end of the names of its prepared folders. Models of
# one run share a vocabulary and the folders; `first_models` has a model of each vocabulary, and `suffixes` its ends.
stacks=encoder first_models=() suffixes=()
declare -A pretrained_model=() segments_of=() suffix_of=()
# Flags of fairseq-train (length of the training, learning rate), of the evaluation and of the report.
schedule=() evaluation=() comparison=()

# pretrain FLAGS...: pretrain tiny models with recipes/pretrain_mlm, for --pretrained builtin.
pretrain() {
  free=(--device "$device" --precision float32)
  step pretrain - bash "$ROOT/recipes/pretrain_mlm/run.sh" --preset smoke --pos-enc "$pos_enc" "$@" --output "$output/pretrained"
}

# find_models: find and check the pretrained model of each encoding, and add the segment encodings to the labels in pos_enc.
find_models() {
  [[ -z $papers || -n $(flag like report) ]] || fail "--papers needs --report.like PRESET: the report lists what differs from this preset."
  local labels label base places list=() check=() number=0 segment place
  mapfile -t labels < <(split "$pos_enc")
  IFS=, read -ra places <<<"${pretrained:-${dry_run:+PRETRAINED}}"
  [[ $pretrained != builtin ]] || places=("$output/pretrained")
  ((${#places[@]} == 1 || ${#places[@]} == ${#labels[@]})) || fail "--pretrained names ${#places[@]} models for ${#labels[@]} encodings ($pos_enc). Name a run of recipes/pretrain_mlm that has them all, or a model for each. $(advice "$pos_enc")"
  for base in "${labels[@]}"; do
    place=$(checkpoint "${places[number]}" "$base")
    for segment in ${segments//,/ }; do
      case $segment in none) label=$base ;; input) label=$base+segments-input ;; head) label=$base+segments ;; esac
      pretrained_model[$label]=$place segments_of[$label]=$segment suffix_of[$label]=''
      ((${#places[@]} == 1)) || suffix_of[$label]=.$(slug "$base")
      list+=("$label") check+=(--model "$label" "$place" "$segment")
    done
    ((${#places[@]} == 1 && number + ${#suffixes[@]})) || { first_models+=("$place") && suffixes+=("${suffix_of[$label]}"); }
    ((${#places[@]} == 1)) || ((++number))
    if [[ -d $place ]]; then reads "$place"/*; elif [[ $pretrained != builtin ]]; then reads "$place"; fi
  done
  pos_enc=$(IFS=, && echo "${list[*]}")
  [[ ! -e $tokenizer ]] || check+=(--tokenizer "$tokenizer")
  [[ -z $(flag pos-enc-args) ]] || check+=(--pos-enc-args "$(flag pos-enc-args)")
  step check "$output/models.json" python -m recipes.lib.finetuning.check --length "$length" "${check[@]}" --output "$output/models.json"
  evaluation=(--run "$output" --learning-rates "$learning_rates" --epochs "$epochs" --keep "$keep" --papers "$papers" --output "$output/evaluated")
  place=$output/evaluated
  comparison=(--run "$output" --models "$place/models.tsv" --scores "$place/scores" --metric score --detail '*' "${report[@]}"
    --baselines "$place/baselines.json" --notes "$place/notes.md")
  [[ -z $papers ]] || comparison+=(--paper-numbers "$place/paper.json" --differs-also "$place/differs.txt")
  [[ $keep == last ]] || comparison+=(--intervals) # they decide which checkpoints exist
  for label in pretrained tokenizer raw papers like pretraining tasks languages train-file dev-file segments; do comparison+=(--same "$label"); done
}
advice() { echo "To pretrain models: ${pretraining:-recipes/pretrain_mlm/run.sh --preset small} --pos-enc '$1'"; }

# checkpoint PLACE LABEL: print the model in a run of recipes/pretrain_mlm (of its first seed) or of import-hf, or PLACE itself.
checkpoint() {
  local file
  if [[ ${1-} == "$output/pretrained" ]]; then
    echo "$1/checkpoints/$(slug "$2").s1/checkpoint_last.pt"
  elif [[ -d $1/checkpoints ]]; then
    for file in "$1/checkpoints/$(slug "$2")"{,.s[0-9]*}/checkpoint_last.pt; do [[ ! -f $file ]] || { echo "$file" && return; }; done
    fail "--pretrained $1: the run has no model with the encoding $2. $(advice "$2")"
  elif [[ -f $1/checkpoint.pt ]]; then echo "$1/checkpoint.pt"; else echo "$1"; fi
}

# prepare NAME SCRIPT FLAGS...: prepare rows or questions for the models of each vocabulary.
prepare() {
  local number
  for number in "${!suffixes[@]}"; do
    step "prepare:$1${suffixes[number]}" "$output/data/$1${suffixes[number]}" python "$ROOT/data-bin-scripts/$2" "${@:3}" \
      --checkpoint "${first_models[number]}" ${tokenizer:+--tokenizer "$tokenizer"} --length "$length" --separators "$separators" \
      --bad "$bad" --output "$output/data/$1${suffixes[number]}"
  done
}

# train_all NAME ENCODING SEED DATA FLAGS...: fine-tune a model with each learning rate and number of epochs.
train_all() {
  local trial lr count trained=''
  while read -r trial lr count; do
    set_schedule "$4" "$count"
    train "$trial" "$4" "${PLUGIN[@]}" "${PLAIN[@]}" --log-interval 20 "${@:5}" --arch posenc_roberta_pretrained \
      --pretrained "${pretrained_model[$2]}" "${train[@]}" --lr "$lr" "${schedule[@]}" --seed "$3" \
      --no-epoch-checkpoints --keep-interval-updates 1 && trained=1
  done < <(trials "$1")
  [[ -n $trained ]]
}

# trials NAME: print the name, the learning rate and the number of epochs of each training of a model.
trials() {
  local lr count
  for lr in ${learning_rates//,/ }; do
    for count in ${epochs//,/ }; do
      if [[ $learning_rates$epochs == *,* ]]; then echo "$1.lr$lr.e$count $lr $count"; else echo "$1 $lr $count"; fi
    done
  done
}

# set_schedule DATA EPOCHS: set the array `schedule`: the length of the training, and a learning rate that falls linearly.
set_schedule() {
  local words="--max-epoch $2 --max-update UPDATES --total-num-update UPDATES --warmup-updates $warmup*UPDATES"
  local arguments=(--data "$1" --epochs "$2" --batch $((batches * $(flag batch-size))) --warmup "$warmup")
  [[ -n $dry_run ]] || words=$(python -m recipes.lib.finetuning.schedule "${arguments[@]}") || fail "$1 has no number of training items."
  read -ra schedule <<<"$words --lr-scheduler polynomial_decay"
}
