#!/usr/bin/env bash
# Train translation models with different position encodings on raw parallel text, and score them with sacreBLEU.
#   recipes/translation_wmt18/run.sh --preset small --corpus DIR --pos-enc 'none,shaw[clip=16],rope/t5' --seeds 1,2
source "$(dirname "$0")/../lib/recipe.sh"
source "$ROOT/recipes/translation_wmt18/places.sh" # place, checkpoint, own_files, check_settings

preset=base           # settings in conf/NAME.sh
corpus=wmt18          # wmt18, builtin (invented text), or a folder with {train,valid,test}.{SOURCE,TARGET}, plain or .gz [wmt18|builtin|DIR]
direction=en-de       # directions SOURCE-TARGET, separated by commas; both directions of a pair share their text
test_set=test         # name of the test files in your folder
raw=data/raw          # wmt18: folder for the downloaded archives
newstest=''           # wmt18: folder with the test sets (none: sacreBLEU downloads them) [DIR]
sizes=1000,50,50      # builtin: numbers of pairs for training, validation and test [list int 1..]
limit=0               # number of training pairs to use (0: all) [int 0..]
bad_lines=refuse      # whether bad training pairs stop the recipe, or are left out [refuse|drop]
tokenizer=sentencepiece # unigrams or BPE of SentencePiece on raw text, or fastBPE on words of the Moses tokenizer [sentencepiece|sentencepiece-bpe|fastbpe]
character_coverage=1  # SentencePiece: part of the characters that the subwords must cover [number 0.98..1]
dictionary=joint      # one vocabulary for both languages, or one for each [joint|separate]
vocabulary=32000      # subword types in a vocabulary [int 1..]
length=256            # longest sentence in subwords; longer ones are bad lines [int 1..1023]
train_words=0         # longest sentence of training and validation in words; the test set keeps all (0: no limit) [int 0..]
train_length=0        # longest sentence of training and validation in subwords (0: no limit) [int 0..]
bounds=''             # upper bounds of groups of source lengths in words, for BLEU by length: 10,20,40 [list int 1..]
workers=1             # processes that prepare the text [int 1..]
average=5             # number of last checkpoints to average (1: only the last) [int 1..]
arch=posenc_transformer_wmt_en_de # architecture of fairseq-train
options "$@"
check_settings

start=$chain every=$(flag save-interval-updates) kept=$((average > 10 ? average : 10)) # so that --average can change later
keep=(--keep-last-epochs "$kept") unit=epoch skip=(--skip-invalid-size-inputs-valid-test)
[[ -z $every ]] || keep=(--no-epoch-checkpoints --keep-interval-updates "$kept") unit=update
((average > 1)) || keep=(--no-epoch-checkpoints)
((train_words > 0)) || skip=()
mapfile -t labels < <(split "$pos_enc") && IFS=, read -ra numbers <<<"$sizes"
declare -A chains=() # of the steps before the models, by the folder of the text

text() { # DIRECTION: raw text, subwords and fairseq's binary files of a pair of languages
  local text=$corpus joined=(--joined-dictionary) && place "$1" && chain=$start
  [[ $dictionary == joint ]] || joined=()
  case $corpus in
    builtin) text=$folder/builtin && step "builtin:$1" "$text" python -m recipes.lib.invented.sentences --seed 1 \
      --train "${numbers[0]}" --valid "${numbers[1]}" --test "${numbers[2]}" --names "$source" "$target" --output "$text" ;;
    wmt18) text=$folder/wmt18 free=(--raw "$raw" --workers "$workers") && step "wmt18:$1" "$text" bash data-bin-scripts/prepare_wmt18.sh \
      --pair "en-${target/#en/"$source"}" ${newstest:+--newstest "$newstest"} --output "$text" ;;
    *) mapfile -t files < <(own_files) && reads "${files[@]}" ;;
  esac
  step "text:$1" "$folder/raw" python -m recipes.lib.translation.parallel --folder "$text" --languages "$source" "$target" \
    --test-set "$test_set" --limit "$limit" --longest "$train_words" --bad-lines "$bad_lines" --output "$folder/raw"
  free=(--workers "$workers")
  step "subwords:$1" "$folder/subwords" python -m recipes.lib.translation.subwords --raw "$folder/raw" --languages "$source" "$target" \
    --tokenizer "$tokenizer" --dictionary "$dictionary" --vocabulary "$vocabulary" --character-coverage "$character_coverage" \
    --longest "$length" --longest-training "$train_length" --bad-lines "$bad_lines" --output "$folder/subwords"
  free=(--workers "$workers")
  step "binarise:$1" "$folder/data-bin" fairseq-preprocess "${languages[@]}" "${joined[@]}" --trainpref "$folder/subwords/train" \
    --validpref "$folder/subwords/valid" --testpref "$folder/subwords/test" --destdir "$folder/data-bin"
  chains[$folder]=$chain
}

model() { # NAME ENCODING SEED DIRECTION
  local name=$1 pos && mapfile -t pos < <(encoding "$2") && place "$4" && chain=${chains[$folder]}
  train "$name" "$folder/data-bin" "${PLUGIN[@]}" "${PLAIN[@]}" --log-interval 20 "${languages[@]}" --arch "$arch" "${train[@]}" \
    "${pos[@]}" --seed "$3" "${keep[@]}"
  free=(${every:+--every "$every"}) # a check, which does not change the result
  ((average == 1)) || step "average:$name" "$(checkpoint "$name")" python -m fairseq_posenc average \
    --inputs "$output/checkpoints/$name" "--num-$unit-checkpoints" "$average" --output "$(checkpoint "$name")"
  device_step "translate:$name" "$output/generated/$name" fairseq-generate "$folder/data-bin" "${PLUGIN[@]}" "${PLAIN[@]}" \
    "${decoding[@]}" --distributed-world-size 1 --path "$(checkpoint "$name")" "${skip[@]}" --results-path "$output/generated/$name"
  step "score:$name" "$output/scores/$name.json" python -m recipes.lib.translation.score --run "$output" --name "$name" \
    --text "$folder/raw" --languages "$source" "$target" --bounds "$bounds"
}

step check "$output/checked.json" python -m recipes.lib.check_models "${labels[@]/#/--pos-enc=}" --target-lang "${direction##*-}" \
  --generate "$(words "${generate[@]}")" --output "$output/checked.json" -- "${PLUGIN[@]}" --arch "$arch" "${train[@]}"
for way in ${direction//,/ }; do [[ -v chains[$folder] ]] || text "$way"; done
models model ${direction//,/ }
for way in ${direction//,/ }; do
  place "$way"
  step "bootstrap:$way" "$output/bootstrap/$way.json" python -m recipes.lib.translation.bootstrap --run "$output" --direction "$way" \
    --reference "$folder/raw/test.$target" --output "$output/bootstrap/$way.json"
done
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric bleu --metric chrf
[[ -n $dry_run ]] || cat "$output/results.md"
