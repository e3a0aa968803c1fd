#!/usr/bin/env bash
# Pretrain masked language models (BERT, RoBERTa) with different position encodings, and compare their validation losses.
#   recipes/pretrain_mlm/run.sh --preset small --corpus DIR --pos-enc learned,t5,'shaw[clip=16]' --seeds 1,2
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
corpus=builtin            # text: names joined by commas, a folder with train.* and valid.*, or one that prepare_corpus.py wrote [list builtin|books_wiki|openwebtext|c4_en|wiki100|DIR]
books=''                  # for books_wiki: folder with a file for each book, as BooksCorpus is no longer distributed [DIR if corpus=books_wiki]
languages=''              # for wiki100: folder with a folder of text for each language (en, de, ...) [DIR if corpus=wiki100]
raw=data/raw              # folder for downloads
tokenizer=sentencepiece   # subword tokenizer of the text [gpt2|wordpiece|sentencepiece]
tokenizer_path=''         # its files, or published (GPT-2's, uncased BERT's); otherwise it is learned, except GPT-2's
vocabulary=8000           # subword types to learn, if the tokenizer is learned [int 1.. if tokenizer=wordpiece,sentencepiece]
shards=1                  # parts of the text; each epoch of fairseq reads one of them [int 1..]
workers=1                 # shards that are prepared at the same time [int 1..]
prepare=()                # flags of prepare_corpus.py, such as --prepare.limit 1000 --prepare.valid-part 0.01
length=128                # maximum number of tokens of a sequence, with <s> and </s> [int 8..]
positions=0               # positions of the model (0: as many as --length) [int 0..]
masking=dynamic           # mask single pieces or whole words; each epoch has new masks [dynamic|whole-word]
arch=posenc_roberta_base  # architecture of fairseq-train
init_from=''              # BERT or RoBERTa to start from: folder of Hugging Face, or checkpoint of fairseq [PATH]
init_model=''             # name of the model that the preset needs as --init-from
stacks=(encoder) own=([tokens-per-sample]=--length [max-positions]=--positions [finetune-from-model]=--init-from
  [mask-whole-words]=--masking [max-tokens]=--train.batch-size [sample-break-mode]='' [task]='' [criterion]='')
options "$@"

# --- checks, before hours of work
source "$HERE/corpora.sh"
[[ ! -f $corpus/corpus.json ]] || prepared "$corpus"
((positions)) || positions=$length
flags=("${PLUGIN[@]}" --task posenc_masked_lm --criterion masked_lm --arch "$arch" --sample-break-mode complete
  --tokens-per-sample "$length" --max-positions "$positions" --log-interval 20)
[[ $masking == dynamic ]] || flags+=(--mask-whole-words --subwords "$tokenizer")
end=$(flag total-num-update) end=${end:-$(flag max-update)} # update at which a linear decay ends
[[ $(flag lr-scheduler) != polynomial_decay ]] || flags+=(--total-num-update "${end:?"--train.max-update N is missing"}")
mark settings && step check "$output/checked" python -m recipes.lib.check_models --output "$output/checked" \
  --pos-enc "$pos_enc" -- "${flags[@]}" "${train[@]}"
[[ -z $init_from ]] || step source "$output/source" python -m recipes.pretrain_mlm.check_source --source "$init_from" \
  --output "$output/source" -- "${flags[@]}" "${train[@]}"

# --- text, tokenizer and shards, unless the corpus has been prepared; other flags of the training do not change them
if after settings && [[ $data != "$corpus" ]]; then
  text_of "$corpus" && tokenizer_of "$tokenizer" && free=(--workers "$workers")
  step shards "$data" python "$ROOT/data-bin-scripts/prepare_corpus.py" --train "${text[@]}" --output "$data" \
    --tokenizer "$tokenizer" --longest $((length - 2)) --tasks "$shards" "${prepare[@]}"
fi
shard=$data/shard00000 parts=$(printf ":$data/shard%05d" $(seq 0 $((shards - 1)))) unigrams=$output/unigrams.json
[[ $masking:$tokenizer != whole-word:gpt2 ]] || flags+=(--gpt2-encoder-json "$data/tokenizer/encoder.json")
step unigrams "$unigrams" python -m recipes.pretrain_mlm.unigrams --shard "$shard" --masking "$masking" --output "$unigrams"

# --- a model for each encoding and seed
model() {
  local name=$1 seed=$3 start=() pos && mapfile -t pos < <(encoding "$2")
  [[ -z $init_from ]] || {
    start=(--finetune-from-model "$output/imported/$name/checkpoint.pt")
    step "import:$name" "$output/imported/$name" python -m fairseq_posenc import-hf "$init_from" "${pos[@]}" \
      --max-positions "$positions" --seed "$seed" --output "$output/imported/$name"
  }
  train "$name" "${parts#:}" "${PLAIN[@]}" "${flags[@]}" "${train[@]}" "${pos[@]}" --seed "$seed" "${start[@]}" \
    --no-epoch-checkpoints --keep-interval-updates 2
  device_step "evaluate:$name" "$output/scores/$name.json" python -m recipes.pretrain_mlm.evaluate --data "$shard" \
    --checkpoint "$output/checkpoints/$name/checkpoint_last.pt" --unigrams "$unigrams" \
    --log "$output/logs/$name.train.log" --output "$output/scores/$name.json"
}
models model
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric bits --metric 'training loss' \
  --detail nats --detail perplexity --detail accuracy --detail 'left the plateau' --detail updates --lower --digits 3 \
  --floor "$unigrams" --paper M4M --table 'Section 5.2' --column METRIC --column 'training loss=loss' --like m4m-unsuccessful
show_results
