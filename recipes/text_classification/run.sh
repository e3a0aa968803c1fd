#!/usr/bin/env bash
# Train text classifiers from scratch with several position encodings and random seeds, and compare them: on the tasks of
# Qu et al. 2021 (LFHC and GCDF, Tables 1 and 5), or on your own texts or pairs of texts with labels.
#   recipes/text_classification/run.sh --preset small --corpus DIR --text title --label topic --pos-enc rope
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
corpus=published          # published (see --tasks), builtin (invented reviews), or a folder with the files train, dev and test (.tsv, .csv or .jsonl) [published|builtin|DIR]
tasks=SST-2               # published data sets [list IMDB|SST-2|SNLI|QNLI|QQP|MNLI|RTE if corpus=published]
files=''                  # folder that has the published files already; empty: download them [DIR if corpus=published]
raw=data/raw              # folder for downloads
text=text                 # column of the text in your own files [if corpus=DIR]
pair=''                   # column of the second text in your own files, if rows are pairs [if corpus=DIR]
label=label               # column of the label in your own files [if corpus=DIR]
tokenizer=''              # split words by NLTK's rules or at spaces; empty: spaces for SST-2, whose text is tokenised, otherwise nltk [nltk|spaces]
glove=''                  # word vectors: a file in GloVe's format, or published (downloads 2.2 GB); empty: none [published|FILE]
more_than=3               # keep words that occur more often than this in training [int 0..]
length=512                # tokens of an item; longer texts are cut [int 8..]
bad=refuse                # rows without text or label: stop with a list, or leave them out [refuse|skip]
limit=0                   # training rows to use; 0: all [int 0..]
segments=input            # segment embeddings of pairs: added to the input, or none [input|none]
schedule=others:2000:200:500 # TASK:UPDATES:WARM-UP:INTERVAL,... with the updates between validations; others: all other data; flags in --train win
arch=posenc_classifier    # architecture of fairseq-train
stacks=(encoder)
options "$@"

# --- each data set: download it, split it into words, and write fairseq's binary files
declare -A archive=([IMDB]='imdb --no-unpack' [SNLI]=snli [QNLI]=glue/QNLIv2.zip [QQP]=glue/QQP-clean.zip) # others: glue/TASK.zip
fetch=(python "$ROOT/data-bin-scripts/fetch.py" --output "$raw") vectors=$glove paper=()
case $corpus in
  published) IFS=, read -ra items <<<"$tasks"
    paper=(--paper LFHC --table 'Table 1' --table 'Table 5' --column ITEM --like paper --same tasks --same raw --same files) ;;
  builtin) items=(builtin) folder=$output/builtin
    step builtin "$output/builtin" python -m recipes.text_classification.builtin --seed 1 --output "$folder" ;;
  *) items=("$(slug "${corpus##*/}")") folder=$corpus
    mapfile -t texts < <(find -L "$corpus" -maxdepth 1 -type f | sort) && reads "${texts[@]}" ;;
esac
[[ $glove != published ]] || { step fetch:glove - "${fetch[@]}" glove --no-unpack && vectors=$raw/glove/glove.840B.300d.zip; }
for item in "${items[@]}"; do
  name=${item,,} data=$output/data-bin/$item && read -ra file <<<"${archive[$item]-glue/$item.zip}"
  rows=(--corpus "${folder-}" --text "$text" --label "$label" ${pair:+--pair "$pair"})
  [[ $corpus != published ]] || rows=(--task "${name/-/}" --corpus "${files:-$raw/${file[0]%%/*}}")
  [[ $corpus != published || -n $files ]] || step "fetch:$item" - "${fetch[@]}" "${file[@]}"
  step "prepare:$item" "$data" python "$ROOT/data-bin-scripts/prepare_text_classification.py" "${rows[@]}" --seed 1 \
    --tokenizer "${tokenizer:-$([[ $item == SST-2 ]] && echo spaces || echo nltk)}" --more-than "$more_than" --bad "$bad" \
    --length "$length" --limit "$limit" ${vectors:+--glove "$vectors"} --output "$data"
done

model() { # NAME ENCODING SEED DATA-SET: single texts are pooled over all words, pairs by <s>
  local data=$output/data-bin/$4 plan=${schedule//,/$'\n'} pos n more=(--pooling max) && mapfile -t pos < <(encoding "$2")
  if [[ " SNLI QNLI QQP MNLI RTE " == *" $4 "* || ($corpus != published && -n $pair) ]]; then
    more=(--pooling cls --init-token 0)
    [[ $segments == none || ${pos[1]} == *segments-input* ]] || pos[1]+=+segments-input
  fi
  [[ -z $glove ]] || more+=(--word-vectors "$data/word_vectors.safetensors")
  IFS=: read -ra n < <(grep -m 1 "^$4:" <<<"$plan" || grep -m 1 ^others: <<<"$plan") ||
    fail "--schedule $schedule has neither $4 nor others."
  local train=(--max-update "${n[1]}" --warmup-updates "${n[2]}" --validate-interval-updates "${n[3]}"
    --save-interval-updates "${n[3]}" "${train[@]}")
  train "$1" "$data" "${PLUGIN[@]}" "${PLAIN[@]}" --log-interval 50 --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --metrics "accuracy$([[ $4 != QQP ]] || echo ,f1)" --arch "$arch" "${pos[@]}" "${more[@]}" \
    --max-positions "$length" --best-checkpoint-metric score --maximize-best-checkpoint-metric --seed "$3" "${train[@]}" \
    --total-num-update "$(flag max-update)" --no-epoch-checkpoints --keep-interval-updates 1
}
models model "${items[@]}"
device_step evaluate "$output/baselines.json" python -m recipes.text_classification.evaluate --run "$output"
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric score \
  --detail 'accuracy, *' --detail 'best update' --baselines "$output/baselines.json" --differs-also "$output/differs.tsv" \
  --notes "$HERE/legend.md" "${paper[@]}"
show_results
