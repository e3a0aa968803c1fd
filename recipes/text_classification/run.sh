#!/usr/bin/env bash
# Train text classifiers from scratch with several position encodings and random seeds, and compare them: on the tasks of
# Qu et al. 2021 (LFHC and GCDF, Tables 1 and 5), or on your own texts or pairs of texts with labels.
#   recipes/text_classification/run.sh --preset small --tasks SST-2 --pos-enc none,shaw,gcdf --seeds 1,2,3
#   recipes/text_classification/run.sh --preset small --corpus DIR --text title --label topic --pos-enc rope
#   recipes/text_classification/run.sh --preset paper --tasks IMDB,QQP --pos-enc xl,gcdf
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
corpus=published          # published (see --tasks), builtin (invented reviews), or a folder with the files train, dev and test (.tsv, .csv or .jsonl) [published|builtin|DIR]
tasks=SST-2               # published data sets [list IMDB|SST-2|SNLI|QNLI|QQP|MNLI|RTE]
files=''                  # folder that has the published files already; empty: download them [DIR]
raw=data/raw              # folder for downloads
text=text                 # column of the text in your own files
pair=''                   # column of the second text in your own files, if rows are pairs
label=label               # column of the label in your own files
tokenizer=auto            # split words by NLTK's rules, or at spaces; auto: spaces for SST-2, whose text is tokenised, nltk otherwise [auto|nltk|spaces]
glove=''                  # word vectors: a file in GloVe's format, or published (downloads 2.2 GB); empty: none [published|FILE]
more_than=3               # keep words that occur more often than this in training [int 0..]
length=512                # tokens of an item; longer texts are cut [int 8..]
bad=refuse                # rows without text or label: stop with a list, or leave them out [refuse|skip]
limit=0                   # training rows to use; 0: all [int 0..]
segments=input            # segment embeddings of pairs: added to the input, or none [input|none]
schedule=''               # TASK:UPDATES:WARM-UP:INTERVAL,... for tasks that differ; flags in --train come later and win
arch=posenc_classifier    # architecture of fairseq-train
options "$@"

archive() { # TASK: words for fetch.py, whose first word begins with the folder
  case $1 in IMDB) echo imdb --no-unpack ;; SNLI) echo snli ;; QNLI) echo glue/QNLIv2.zip ;; QQP) echo glue/QQP-clean.zip ;; *) echo "glue/$1.zip" ;; esac
}
is_pair() { [[ " SNLI QNLI QQP MNLI RTE " == *" $1 "* || ($corpus != published && -n $pair) ]]; }
items=() vectors=$glove fetch=(python "$ROOT/data-bin-scripts/fetch.py" --output "$raw")
case $corpus in
  published) IFS=, read -ra items <<<"$tasks" ;;
  builtin) items=(builtin)
    step builtin "$output/builtin" python -m recipes.text_classification.builtin --seed 1 --output "$output/builtin" ;;
  *) items=("$(slug "$(basename "$corpus")")") && mapfile -t own < <(find -L "$corpus" -maxdepth 1 -type f | sort) && reads "${own[@]}" ;;
esac
[[ $glove != published ]] || { vectors=$raw/glove/glove.840B.300d.zip && step fetch:glove - "${fetch[@]}" glove --no-unpack; }
for item in "${items[@]}"; do
  data=$output/data-bin/$item words=$tokenizer more=(--bad "$bad")
  [[ $words != auto ]] || { words=nltk && [[ $item != SST-2 ]] || words=spaces; }
  case $corpus in
    builtin) more+=(--corpus "$output/builtin") ;;
    published) name=${item,,} && read -ra names <<<"$(archive "$item")"
      [[ -n $files ]] || step "fetch:$item" - "${fetch[@]}" "${names[@]}"
      more+=(--task "${name/-/}" --corpus "${files:-$raw/${names[0]%%/*}}") ;;
    *) more+=(--corpus "$corpus" --text "$text" --label "$label" ${pair:+--pair "$pair"}) ;;
  esac
  step "prepare:$item" "$data" python "$ROOT/data-bin-scripts/prepare_text_classification.py" --tokenizer "$words" \
    --more-than "$more_than" --length "$length" --seed 1 --limit "$limit" ${vectors:+--glove "$vectors"} "${more[@]}" --output "$data"
done

model() { # NAME ENCODING SEED DATA-SET
  local data=$output/data-bin/$4 pos row=$schedule, metrics=accuracy flags=(--pooling max) && mapfile -t pos < <(encoding "$2")
  [[ $4 != QQP ]] || metrics=accuracy,f1
  ! is_pair "$4" || flags=(--pooling cls --init-token 0)
  ! is_pair "$4" || [[ $segments == none || ${pos[1]} == *segments-input* ]] || pos[1]+=+segments-input
  [[ -z $glove ]] || flags+=(--word-vectors "$data/word_vectors.safetensors")
  [[ $row != *"$4":* ]] || row=others:${row#*"$4":} # the task's row; without one, that of others
  row=${row#*others:}
  IFS=: read -r updates warmup interval <<<"${row%%,*}"
  [[ -z $schedule ]] || local train=(--max-update "$updates" --warmup-updates "$warmup" \
    --validate-interval-updates "$interval" --save-interval-updates "$interval" "${train[@]}")
  train "$1" "$data" "${PLUGIN[@]}" "${PLAIN[@]}" --log-interval 50 --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --metrics "$metrics" --arch "$arch" "${pos[@]}" "${flags[@]}" \
    --max-positions "$length" --best-checkpoint-metric score --maximize-best-checkpoint-metric --seed "$3" "${train[@]}" \
    --total-num-update "$(flag max-update)" --no-epoch-checkpoints --keep-interval-updates 1
}
models model "${items[@]}"
device_step evaluate "$output/baselines.json" python -m recipes.text_classification.evaluate --run "$output" \
  --models "${finished[@]}"
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric score
