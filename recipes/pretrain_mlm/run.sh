#!/usr/bin/env bash
# Pretrain masked language models (BERT or RoBERTa) with different position encodings on the same shards of full
# sentences, and compare their losses on held-out documents.
#   recipes/pretrain_mlm/run.sh --preset small --corpus DIR --pos-enc learned,t5,'shaw[clip=16]' --seeds 1,2
#   recipes/pretrain_mlm/run.sh --preset m1-m4-warm-start --books BOOKS --init-from BERT --processes 8
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
corpus=builtin            # text: names joined by commas, a folder with train.* and valid.*, or one of prepare_corpus.py [list builtin|books_wiki|openwebtext|c4_en|wiki100|DIR]
books=''                  # for books_wiki: folder with a file for each book, as BooksCorpus is no longer distributed [DIR]
languages=''              # for wiki100: folder with a folder of text for each language (en, de, ...) [DIR]
valid_part=0.005          # fraction of the documents to hold out, if the corpus has no validation text [number 0..1]
raw=data/raw              # folder for downloads
tokenizer=sentencepiece   # subword tokenizer of the text [gpt2|wordpiece|sentencepiece]
tokenizer_path=''         # its files, or published (GPT-2's, uncased BERT's); otherwise it is learned, except GPT-2's
vocabulary=8000           # subword types to learn, if the tokenizer is learned [int 1..]
prepare=()                # flags of prepare_corpus.py, such as --prepare.limit 1000 --prepare.cased true
shards=1                  # parts of the text; each epoch of fairseq reads one of them [int 1..]
workers=1                 # shards that are prepared at the same time [int 1..]
length=128                # maximum number of tokens of a sequence, with <s> and </s> [int 8..]
positions=0               # positions of the model (0: as many as --length) [int 0..]
masking=dynamic           # mask single pieces or whole words; each epoch has new masks [dynamic|whole-word]
arch=posenc_roberta_base  # architecture of fairseq-train
init_from=''              # BERT or RoBERTa to start from: folder of Hugging Face, or checkpoint of fairseq [PATH]
init_model=''             # name of the model that the preset needs as --init-from
options "$@"

# --- quick checks, before hours of work
need() { # SETTING REASON: a setting must have a value; a dry run shows its name instead
  [[ -n ${!1} ]] || { [[ -n $dry_run ]] || fail "--${1//_/-} is missing: $2" && printf -v "$1" %s "${1^^}"; }
}
[[ -z $init_model ]] || need init_from "this preset starts from $init_model. Give its folder or checkpoint."
((positions)) || positions=$length
((positions >= length)) || fail "--positions $positions: sequences of --length $length need $length positions or more."
[[ ! -f $corpus/corpus.json ]] || tokenizer=$(grep -m 1 -oP '"tokenizer": "\K\w+' "$corpus/corpus.json")
end=$(flag total-num-update) end=${end:-$(flag max-update)} # of a linear decay
flags=(--task posenc_masked_lm --criterion masked_lm --arch "$arch" --sample-break-mode complete
  --tokens-per-sample "$length" --max-positions "$positions")
[[ $masking == dynamic ]] || flags+=(--mask-whole-words --subwords "$tokenizer")
[[ $(flag lr-scheduler) != polynomial_decay ]] || flags+=(--total-num-update "${end:-?}")
flags=("${PLUGIN[@]}" "${flags[@]}" --log-interval 20 "${train[@]}")
mapfile -t labels < <(split "$pos_enc")
step check "$output/checked.json" python -m recipes.lib.check_models --output "$output/checked.json" \
  "${labels[@]/#/--pos-enc=}" -- "${flags[@]}"
[[ -z $init_from ]] || step source "$output/source.json" python -m recipes.pretrain_mlm.check_source \
  --source "$init_from" --output "$output/source.json" -- "${flags[@]}"

# --- text, tokenizer and shards
fetch() { step "fetch:$1" - python "$ROOT/data-bin-scripts/fetch.py" "$@" --output "$raw"; }
