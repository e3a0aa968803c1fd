#!/usr/bin/env bash
# Train word-level language models with Transformer-XL's memory and different position encodings, and compare their
# perplexities of the test text with memories of several lengths, without training again.
#   recipes/lm_wikitext103/run.sh --preset small --corpus wikitext-2 --pos-enc 'xl,lfhc[clip=16],learned' --seeds 1,2
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
corpus=builtin            # text: builtin, wikitext103, a folder with {train,valid,test}.txt or wiki.*.tokens, plain or .gz, or one of fairseq-preprocess [builtin|wikitext103|DIR]
raw=data/raw              # folder for downloads [if corpus=wikitext103]
types=0                   # word types that the training text must have, with <unk> and <eos> (0: any number) [int 0.. if corpus=builtin,DIR]
workers=1                 # processes of fairseq-preprocess [int 1..]
length=150                # tokens of a segment in training [int 1..]
mem_train=150             # states of earlier tokens that each layer reads in training [int 0..]
mem_eval=0,150            # the same in evaluation, one or several numbers [list int 0..]
eval_segment=64           # tokens of a segment in evaluations with a memory longer than --length [int 1..]
eval_clamp=0              # largest distance in these evaluations, for encodings with an option clamp (0: no limit) [int 0..]
eval_same_length=true     # in these evaluations, let every token attend to the same number of keys [true|false]
eval_batch=10             # parallel streams of text in evaluation [int 1..]
split='test'              # split to evaluate [test|valid]
arch=posenc_transformer_lm_wt103  # architecture of fairseq-train
stacks=(decoder) own=([tokens-per-sample]=--length [mem-length]=--mem-train [eval-mem-length]=--mem-eval [task]=''
  [eval-segment-length]=--eval-segment [same-length]=--eval-same-length [max-tokens]=--train.batch-size)
options "$@"

# --- checks, before hours of work
remembers() { # whether all joined encodings can read earlier segments
  local name kinds && read -ra kinds < <(sed -E 's/\[[^]]*\]//g; s/\+/ /g; s/-[0-9]+( |$)/ /g' <<<"$1")
  for name in "${kinds[@]}"; do
    grep -q "^ \"$name\":.*\"memory\": true" "$ROOT/recipes/lib/encodings.json" || return 1
  done
}
longest=0 # tokens of memory and segment together
for m in ${mem_eval//,/ }; do n=$((m + (m > length ? eval_segment : length))) longest=$((n > longest ? n : longest)); done
flags=("${PLUGIN[@]}" --task posenc_lm_memory --arch "$arch" --tokens-per-sample "$length" --log-interval 20)
mark settings && step check "$output/checked" python -m recipes.lib.check_models --output "$output/checked" \
  --pos-enc "$pos_enc" --trained $((length + mem_train)) --evaluated "$longest" -- "${flags[@]}" "${train[@]}"

# --- text: words between spaces, and <eos> at the end of each line; it does not depend on the flags of the training
after settings && text=$corpus data=$output/data-bin
case $corpus in
  builtin) text=$output/words && step words "$text" python -m recipes.lib.invented.texts articles --seed 1 --output "$text" ;;
  wikitext103) text=$raw/wikitext-103/wikitext-103-v1 types=267735 # Merity et al. 2017, Table 1
    step "fetch:wikitext103" - python "$ROOT/data-bin-scripts/fetch.py" wikitext-103/wikitext-103-v1.zip --output "$raw" ;;
  *) reads "$corpus"/*{train,valid,test}* && [[ ! -f $corpus/dict.txt ]] || data=$corpus ;;
esac
if [[ $data == "$corpus" ]]; then
  found=$(($(grep -vc ^madeupword "$corpus/dict.txt") + 2)) # with <unk> and <eos>
  ((types == 0 || types == found)) || fail "--types $types: $corpus/dict.txt has $found word types. Give --types $found."
else
  step text "$output/text" python "$ROOT/data-bin-scripts/prepare_words.py" --text "$text" --output "$output/text" --types "$types"
  free=(--workers "$workers") # without the padding factor, fairseq fills the dictionary with invented words
  step binarise "$data" fairseq-preprocess --only-source --destdir "$data" --padding-factor 1 \
    --trainpref "$output/text/train.txt" --validpref "$output/text/valid.txt" --testpref "$output/text/test.txt"
fi

# --- a model for each encoding and seed; encodings without positions for earlier segments are trained without memory
model() {
  local name=$1 seed=$3 memory=0 memories=0 pos && mapfile -t pos < <(encoding "$2")
  ! remembers "$2" || memory=$mem_train memories=$mem_eval
  train "$name" "$data" "${PLAIN[@]}" "${flags[@]}" "${train[@]}" "${pos[@]}" --mem-length "$memory" --seed "$seed" \
    --no-epoch-checkpoints --keep-interval-updates 2
  device_step "evaluate:$name" "$output/scores/$name.json" python -m recipes.lm_wikitext103.evaluate --data "$data" \
    --checkpoint "$output/checkpoints/$name/checkpoint_best.pt" --split "$split" --streams "$eval_batch" \
    --length "$length" --memories "$memories" --segment "$eval_segment" --clamp "$eval_clamp" \
    --same-length "$eval_same_length" --output "$output/scores/$name.json"
}
models model
step report "$output/results.md" python -m recipes.lib.report --run "$output" --item evaluation --metric perplexity \
  --detail 'per word' --lower --curves perplexity --paper LFHC --table 'Table 3' --table 'Table 7' --column ITEM --like wt103
show_results
