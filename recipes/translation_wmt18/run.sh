#!/usr/bin/env bash
# Train translation models with different position encodings on raw parallel text, and score them with sacreBLEU.
#   recipes/translation_wmt18/run.sh --preset small --corpus DIR --pos-enc 'none,shaw[clip=16],rope/t5' --seeds 1,2
source "$(dirname "$0")/../lib/recipe.sh"
source "$ROOT/recipes/translation_wmt18/places.sh" # the functions place, checkpoint, own_files, derive

preset=${preset:-base}  # settings in conf/NAME.sh
corpus=wmt18            # wmt18, builtin (invented text), or a folder with {train,valid,test}.{SOURCE,TARGET} [wmt18|builtin|DIR]
direction=en-de         # directions SOURCE-TARGET, separated by commas; both directions of a pair share their text
test_set='test'         # name of the test files in your folder [if corpus=DIR]
raw=data/raw            # wmt18: folder for the downloaded archives [if corpus=wmt18]
newstest=''             # wmt18: folder with the test sets (none: sacreBLEU downloads them) [DIR if corpus=wmt18]
sizes=1000,50,50        # builtin: numbers of pairs for training, validation and test [list int 1.. if corpus=builtin]
limit=0                 # number of training pairs to use (0: all) [int 0..]
bad_lines=refuse        # whether bad training pairs stop the recipe, or are left out [refuse|drop]
tokenizer=sentencepiece # SentencePiece (unigrams or BPE) on raw text, or fastBPE on Moses' words [sentencepiece|sentencepiece-bpe|fastbpe]
character_coverage=1    # SentencePiece: part of the characters that the subwords must cover [number 0.98..1 if tokenizer=sentencepiece,sentencepiece-bpe]
dictionary=joint        # one vocabulary for both languages, or one for each [joint|separate]
vocabulary=32000        # subword types in a vocabulary [int 1..]
length=256              # longest sentence in subwords; longer ones are bad lines [int 1..1023]
train_words=0           # longest sentence for training in words; the test set keeps all (0: no limit) [int 0..]
train_length=0          # longest sentence for training in subwords (0: no limit) [int 0..]
bounds=''               # upper bounds of groups of source lengths in words, for BLEU by length: 10,20,40 [list int 1..]
workers=1               # processes that prepare the text [int 1..]
average=5               # number of last checkpoints to average (1: only the last) [int 1..]
arch=posenc_transformer_wmt_en_de # architecture of fairseq-train
options "$@"
derive && mark start

text() { # DIRECTION: raw text, subwords and fairseq's binary files of a pair of languages
  local text=$corpus && place "$1" && after start
  case $corpus in
    builtin) text=$folder/builtin && step "builtin:$1" "$text" python -m recipes.lib.invented.sentences --seed 1 \
      --sizes "$sizes" --names "$source" "$target" --output "$text" ;;
    wmt18) text=$folder/wmt18 free=(--raw "$raw" --workers "$workers") && step "wmt18:$1" "$text" \
      bash "$ROOT/data-bin-scripts/prepare_wmt18.sh" --pair "en-$other" ${newstest:+--newstest "$newstest"} --output "$text" ;;
    *) mapfile -t files < <(own_files) && reads "${files[@]}" ;;
  esac
  step "text:$1" "$folder/raw" python -m recipes.lib.translation.parallel --folder "$text" --languages "$source" "$target" \
    --test-set "$test_set" --limit "$limit" --longest "$train_words" --bad-lines "$bad_lines" --output "$folder/raw"
  free=(--workers "$workers") && step "subwords:$1" "$folder/subwords" python -m recipes.lib.translation.subwords --raw "$folder/raw" \
    --languages "$source" "$target" --tokenizer "$tokenizer" --dictionary "$dictionary" --vocabulary "$vocabulary" --longest "$length" \
    --longest-training "$train_length" --character-coverage "$character_coverage" --bad-lines "$bad_lines" --output "$folder/subwords"
  free=(--workers "$workers") && step "binarise:$1" "$folder/data-bin" fairseq-preprocess "${languages[@]}" "${joined[@]}" \
    --trainpref "$folder/subwords/train" --validpref "$folder/subwords/valid" --testpref "$folder/subwords/test" --destdir "$folder/data-bin"
}

model() { # NAME ENCODING SEED DIRECTION
  local name=$1 best && mapfile -t pos < <(encoding "$2") && place "$4" && after "binarise:$pair" && best=$(checkpoint "$name")
  train "$name" "$folder/data-bin" "${PLUGIN[@]}" "${PLAIN[@]}" --log-interval 20 "${languages[@]}" --arch "$arch" \
    "${train[@]}" "${pos[@]}" --seed "$3" "${keep[@]}"
  ((average == 1)) || step "average:$name" "$best" python -m fairseq_posenc average --inputs "$output/checkpoints/$name" "${averaged[@]}" --output "$best"
  device_step "translate:$name" "$output/generated/$name" fairseq-generate "$folder/data-bin" "${PLUGIN[@]}" "${PLAIN[@]}" "${decoding[@]}" \
    --path "$best" --distributed-world-size 1 --results-path "$output/generated/$name"
  step "score:$name" "$output/scores/$name.json" python -m recipes.lib.translation.score --generated "$output/generated/$name/generate-test.txt" \
    --text "$folder/raw" --languages "$source" "$target" --bounds "$bounds" --translation "$output/translations/$name.$target" --output "$output/scores/$name.json"
}

mapfile -t directions <<<"${direction//,/$'\n'}" && mapfile -t labels < <(split "$pos_enc") && place "${directions[0]}"
step check "$output/checked.json" python -m recipes.lib.check_models "${labels[@]/#/--pos-enc=}" "${directions[@]/#*-/--target-lang=}" \
  --generate "${search[*]}" --output "$output/checked.json" -- "${PLUGIN[@]}" --arch "$arch" "${train[@]}"
references=() && for way in "${directions[@]}"; do
  place "$way" && { [[ $pair != "$way" ]] || text "$way"; } && references+=(--reference "$way=$folder/raw/test.$target")
done
models model "${directions[@]}"
step bootstrap "$output/bootstrap.json" python -m recipes.lib.translation.bootstrap --run "$output" "${references[@]}" --output "$output/bootstrap.json"
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric BLEU --detail chrF --item direction "${paper[@]}" \
  --p 'p against the first (paired bootstrap)=p of the paired bootstrap' --detail 'BLEU of *' --detail 'refused*'
show_results
