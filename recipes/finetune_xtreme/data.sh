# shellcheck shell=bash disable=SC2034,SC2154
# Find the models, and prepare XNLI, the English questions, and the question sets. This sets `items`, what models are trained on
# (XNLI, SQuAD), and `choice`, flags that choose the checkpoint of a model for questions.
declare -A known=([XQuAD]='en,ar,de,el,es,hi,ru,th,tr,vi,zh' [MLQA]='en,ar,de,es,hi,vi,zh' [TyDiQA]='en,ar,bn,fi,id,ko,ru,sw,te')
sets=${tasks//XNLI/} sets=${sets//,/ } items=() choice=(--best-checkpoint-metric spans --maximize-best-checkpoint-metric)
[[ $tasks != *XNLI* ]] || items+=(XNLI)
[[ -z ${sets// /} ]] || items+=(SQuAD)

declare -A codes=() # the languages of each set that are scored, separated by commas
for name in $sets; do
  for code in ${known[$name]//,/ }; do [[ -n $languages && ",$languages," != *",$code,"* ]] || codes[$name]+=${codes[$name]:+,}$code; done
  [[ -n ${codes[$name]-} ]] || fail "--languages $languages: $name has only the languages ${known[$name]}. Choose at least one of these."
done
case $corpus in
  builtin) place=$output/text ;; published) place=$raw ;;
  *) place=$corpus && mapfile -t files < <(find -L "$corpus" -maxdepth 4 -name '*.[jt][sx][otv]*' | sort) && reads "${files[@]}" ;;
esac
reads ${train_file:+"$train_file"} ${dev_file:+"$dev_file"}

# english SPLIT OWN: print the file with the English questions of a split, if there is one.
english() {
  local file
  [[ $corpus != builtin ]] || { echo "$place/$1.json" && return; }
  for file in ${2:+"$2"} "$place"/{,squad/}"$1"{-v1.1,}.json{,.gz}; do [[ ! -f $file ]] || { echo "$file" && return; }; done
  [[ $corpus != published && (-z $dry_run || -d $corpus) ]] || echo "$place/squad/$1-v1.1.json"
}
if [[ ${items[*]} == *SQuAD ]]; then
  train_file=$(english train "$train_file") dev_file=$(english dev "$dev_file")
  [[ -n $train_file ]] || fail "--corpus $corpus: neither the folder nor its subfolder squad has train-v1.1.json or train.json. Give --train-file."
  [[ -n $dev_file || $learning_rates$epochs != *,* ]] || fail "Choosing among several --learning-rates or --epochs needs English questions. Give --dev-file."
  [[ -n $dev_file && $keep == best ]] || choice=()
  [[ -n $dev_file ]] || choice=(--disable-validation) # the last checkpoint is scored
fi

# fetch FILE...: download files, unless the corpus is one's own.
fetch() { [[ $corpus != published ]] || step "fetch:${1%%/*}" - python "$ROOT/data-bin-scripts/fetch.py" "$@" --output "$raw"; }

# --- invented texts, and models
[[ $corpus$pretrained != *builtin* ]] || step text "$output/text" python -m recipes.lib.finetuning.builtin \
  --tasks "$(IFS=, && echo "${items[*]}")" --seed 1 --output "$output/text"
texts=() && [[ ${items[*]} != *SQuAD ]] || texts=(--corpus "$output/text/text" --vocabulary 120 --length 128)
[[ $pretrained != builtin ]] || pretrain "${texts[@]}" --seeds 1
find_models

# --- XNLI
if [[ $tasks == *XNLI* ]]; then
  fetch xnli/XNLI-1.0.zip xnli/XNLI-MT-1.0.zip
  prepare XNLI prepare_glue.py --task XNLI --corpus "$place" ${languages:+--languages "$languages"} --limit "$limit" --train-rows "$train_rows"
fi
[[ ${items[*]} == *SQuAD ]] || return 0

# --- English questions, without those that are scored later (XQuAD's are a part of SQuAD's development set)
fetch squad/{train,dev}-v1.1.json
without=() words=(--version 1.1 --stride "$stride" --longest-question "$longest_question" --limit-eval "$limit_dev")
for name in $sets; do
  IFS=, read -ra files <<<"${codes[$name]}"
  case $name in
    XQuAD) files=("${files[@]/%/.json}") && fetch "${files[@]/#/xquad/xquad.}" ;;
    MLQA) fetch mlqa/MLQA_V1.zip ;;
    TyDiQA) fetch tydiqa/tydiqa-goldp-v1.1-dev.tgz ;;
  esac
  [[ $corpus == builtin ]] || without+=(--without "${name,,}=$place")
done
[[ ${without[*]} != *--without* || -z $languages ]] || without+=(--languages "$languages")
prepare SQuAD prepare_spans.py --train "$train_file" ${dev_file:+--eval "$dev_file"} --limit "$limit" "${words[@]}" "${without[@]}"
for name in $sets; do
  questions=(--set "${name,,}" --corpus "$place")
  [[ $corpus != published && -z $languages ]] || questions+=(--languages "${codes[$name]}")
  [[ $corpus != builtin ]] || questions=(--eval "en=$place/dev.json" --eval "de=$place/dev.json")
  prepare "$name" prepare_spans.py "${questions[@]}" "${words[@]}"
done
