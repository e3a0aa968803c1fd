#!/usr/bin/env bash
# Train models that generate a question from an answer and its context (Qu et al. 2021: LFHC and GCDF, Tables 2 and 6).
#   recipes/question_generation/run.sh --preset small --corpus DIR --pos-enc 'xl,gcdf,shaw[clip=8,share=none]' --copy-mechanism copynet,none
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
corpus=builtin            # builtin (invented), squad or cmrc (downloaded), a folder with {train,valid,test}.json or src-*.txt and tgt-*.txt, a file in SQuAD's format (split by article), or a folder of prepare_questions.py [builtin|squad|cmrc|PATH]
sets=''                   # names of the training, the validation and maybe the test file in your folder: TRAIN,VALID[,TEST] [if corpus=PATH]
raw=data/raw              # folder for downloads [if corpus=squad,cmrc]
limit=0                   # training questions to use; 0: all [int 0..]
limit_valid=0             # validation and test questions to use; 0: all [int 0..]
bad=refuse                # bad questions: stop with a list, leave them out, or repair misplaced answers and cut long ones [refuse|skip|repair]
context=paragraph         # text that the model reads with the answer [paragraph|sentence]
length=512                # pieces of a source; longer contexts are cut around the answer [int 5..]
longest_answer=100        # pieces of an answer [int 1..]
longest_question=50       # pieces of a question [int 1..]
encoder=scratch           # Hugging Face folder of a BERT or RoBERTa, whose tokenizer is used, too; or scratch [scratch|DIR]
freeze_encoder=''         # yes keeps the pretrained encoder and the embedding fixed [yes if encoder=DIR]
tokenizer=''              # pieces for --encoder scratch; empty: characters for Chinese, otherwise words [words|chars if encoder=scratch]
cased=''                  # yes keeps capital letters, for --encoder scratch [yes if encoder=scratch]
vocabulary=20000          # pieces in the dictionary, for --encoder scratch [int 5.. if encoder=scratch]
copy_mechanism=copynet    # how models copy words of the source: copynet (Gu et al. 2016), gate (See et al. 2017) or none; several train each model with each [list copynet|gate|none]
split=valid               # split for which questions are generated [valid|test]
arch=posenc_question_generation # architecture of fairseq-train
workers=1                 # processes that prepare the questions [int 1..]
stacks=(decoder)
options "$@"
[[ ! -f $corpus/questions.json ]] || no_effect "$corpus is prepared already" sets limit limit_valid bad context longest_answer tokenizer cased vocabulary

# --- checks, questions, and their pieces
data=$output/data-bin folder=$raw questions=(--corpus "$corpus") files=() paper=() && mapfile -t labels < <(split "$pos_enc")
task=(--task posenc_question_generation --max-target-positions $((longest_question + 14))) # room for more than a question
decode=("${task[@]}" --max-source-positions "$length" --max-len-b "$longest_question" "${generate[@]}")
step check "$output/checked.json" python -m recipes.lib.check_models --output "$output/checked.json" "${labels[@]/#/--pos-enc=}" \
  --generate "${decode[*]}" -- "${PLUGIN[@]}" "${task[@]}" --arch "$arch" --criterion question_generation "${train[@]}"
case $corpus in
  builtin) questions=(--corpus "$output/builtin")
    step builtin "$output/builtin" python -m recipes.lib.invented.questions --seed 1 --output "$output/builtin" ;;
  squad) files=(squad/{train,dev}-v1.1.json) paper=(--paper LFHC --column ROUGE-L=SQuAD --like paper) ;;
  cmrc) files=(cmrc2018/cmrc2018_{train,dev,trial}.json) paper=(--paper LFHC --column ROUGE-L=CMRC --like paper-cmrc) ;;
  *) mapfile -t files < <(find -L "$corpus" -maxdepth 1 -type f | sort) && reads "${files[@]}"
    IFS=, read -ra files <<<"$sets" && folder=$corpus && [[ ! -f $corpus/questions.json ]] || data=$corpus ;;
esac
((${#paper[@]} == 0)) || step fetch - python "$ROOT/data-bin-scripts/fetch.py" "${files[@]}" --output "$raw"
[[ ${encoder##*/} != @(bert-base-cased|chinese-roberta-wwm-ext) ]] || paper+=(--same encoder) # wherever the folder is
((${#files[@]} == 0)) || questions=(--train "$folder/${files[0]}"
  --valid "$folder/${files[1]?of --sets is missing. Write TRAIN,VALID or TRAIN,VALID,TEST}" ${files[2]:+--test "$folder/${files[2]}"})
free=(--workers "$workers") sizes=(--max-source-positions "$length") pieces=(--vocabulary "$vocabulary" ${tokenizer:+--tokenizer "$tokenizer"} ${cased:+--cased})
[[ $encoder == scratch ]] || { sizes=(--encoder-from "$encoder" ${freeze_encoder:+--freeze-encoder}) pieces=(--tokenizer "$encoder") && reads "$encoder"/*; }
[[ $data == "$corpus" ]] || step prepare "$data" python "$ROOT/data-bin-scripts/prepare_questions.py" "${questions[@]}" \
  "${pieces[@]}" --context "$context" --length "$length" --longest-answer "$longest_answer" --bad "$bad" --limit "$limit" \
  --longest-question "$longest_question" --limit-valid "$limit_valid" --output "$data"

# --- a model for each encoding and seed, and for each copy mechanism
model() { # NAME ENCODING SEED [COPY-MECHANISM]
  local pos && mapfile -t pos < <(encoding "$2")
  train "$1" "$data" "${PLUGIN[@]}" "${PLAIN[@]}" --log-interval 20 "${task[@]}" --arch "$arch" --criterion question_generation \
    "${sizes[@]}" "${pos[@]}" --copy-mechanism "${4-$copy_mechanism}" --seed "$3" "${train[@]}" --no-epoch-checkpoints --keep-interval-updates 1
  device_step "generate:$1" "$output/generated/$1" fairseq-generate "$data" "${PLUGIN[@]}" "${PLAIN[@]}" "${decode[@]}" \
    --path "$output/checkpoints/$1/checkpoint_best.pt" --scoring rouge_l --gen-subset "$split" --distributed-world-size 1 \
    --results-path "$output/generated/$1"
}
# The names of the models begin with the mechanism only if there are several mechanisms.
IFS=, read -ra mechanisms <<<"$copy_mechanism" && ((${#mechanisms[@]} > 1)) || mechanisms=()
models model "${mechanisms[@]}"
step score "$output/baselines.json" python -m recipes.question_generation.score --run "$output" --data "$data" --split "$split"
step report "$output/results.md" python -m recipes.lib.report --run "$output" --metric ROUGE-L --metric BLEU-4 --metric chrF \
  --detail 'beta 1.2' --detail distinct --detail '*greedy*' --detail copied --detail 'unknown*' --detail 'best update' \
  --item 'copy mechanism' --baselines "$output/baselines.json" --curves rouge_l --same raw --same workers --notes "$HERE/legend.md" "${paper[@]}"
show_results
