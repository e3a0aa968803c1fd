#!/usr/bin/env bash
# Fine-tune pretrained multilingual models on English, and score them in other languages without further training (zero-shot):
# on XNLI (trained on MNLI's rows), and on the questions of XQuAD, MLQA and TyDiQA-GoldP (one model, trained on SQuAD 1.1).
#   recipes/finetune_xtreme/run.sh --preset paper --pretrained results/pretrain_mlm --pos-enc learned,t5 --tasks XNLI,XQuAD --languages en,de
source "$(dirname "$0")/../lib/recipe.sh"
source "$ROOT/recipes/lib/finetuning/models.sh"

preset=small              # settings in conf/NAME.sh
pretrained=''             # a run of recipes/pretrain_mlm, or a checkpoint or folder for each encoding; builtin pretrains tiny models
tokenizer=''              # tokenizer of the models (none: the one next to the model) [PATH]
corpus=published          # published (downloaded), builtin (invented English as en and de), or a folder with the published files [published|builtin|DIR]
train_file=''             # English training questions, instead of {train-v1.1,train}.json in --corpus or its subfolder squad [FILE if tasks=XQuAD,MLQA,TyDiQA]
dev_file=''               # English questions that choose checkpoints and hyperparameters, instead of {dev-v1.1,dev}.json there [FILE if tasks=XQuAD,MLQA,TyDiQA]
tasks=XNLI,XQuAD,MLQA,TyDiQA  # tasks [list XNLI|XQuAD|MLQA|TyDiQA]
languages=''              # languages to score (none: all that have files) [list en|ar|bg|bn|de|el|es|fi|fr|hi|id|ko|ru|sw|te|th|tr|ur|vi|zh]
learning_rates=3e-5       # learning rates to try; the best on English development data is reported [list number 0..]
epochs=3                  # numbers of epochs to try; the best on English development data is reported [list int 1..]
warmup=0.1                # fraction of the updates in which the learning rate rises [number 0..1]
segments=input            # segment encodings to compare, for pairs of texts [list none|input|head]
length=512                # longest input in subword pieces: rows of XNLI are cut, contexts of questions become windows [int 8..]
separators=1              # number of </s> between the two texts of an input: 1 as BERT, 2 as RoBERTa [int 1..2]
stride=128                # questions: pieces between the starts of two windows of a context [int 1.. if tasks=XQuAD,MLQA,TyDiQA]
longest_question=64       # questions: longest question in pieces; longer ones are cut [int 1.. if tasks=XQuAD,MLQA,TyDiQA]
longest_answer=30         # questions: longest answer in pieces [int 1.. if tasks=XQuAD,MLQA,TyDiQA]
bad=refuse                # what to do with unusable training data: stop with a list, or leave it out [refuse|skip]
limit=0                   # number of training rows or questions to use (0: all) [int 0..]
limit_dev=0               # number of questions to score in each language (0: all) [int 0.. if tasks=XQuAD,MLQA,TyDiQA]
train_rows=0              # XNLI without a training file: number of development rows to train on instead [int 0.. if tasks=XNLI]
keep=last                 # checkpoint of a training to score [last|best]
raw=data/raw              # folder for downloads [if corpus=published]
papers=''                 # papers and models whose numbers stand beside ours: PAPER/MODEL;PAPER/MODEL
report=()                 # flags of recipes/lib/report.py, such as --report.centre median
pretraining=''            # command that pretrains the models of the preset, without --pos-enc
options "$@"
((length >= longest_question + separators + 3)) || fail "--length $length leaves no room for context after a question of --longest-question $longest_question pieces."

# --- texts, models, prepared rows and questions, and the scores of answers without a model
source "$HERE/data.sh"
step baselines "$output/baselines.json" python -m recipes.lib.finetuning.baselines --run "$output" --items "$(IFS=, && echo "${items[*]}")" \
  --output "$output/baselines.json"

# --- a training for each encoding and seed, on the rows of XNLI or on the questions of SQuAD
model() { # NAME ENCODING SEED XNLI|SQuAD
  local flags=()
  if [[ $4 == XNLI ]]; then
    read -ra flags < <(python -m recipes.lib.finetuning.tasks --task XNLI --separators "$separators")
    flags=("${flags[@]:1}") # without the name of the task
  else flags=(--task posenc_squad --criterion squad "${choice[@]}"); fi
  train_all "$1" "$2" "$3" "$output/data/$4${suffix_of[$2]}" "${flags[@]}" --segments "${segments_of[$2]}"
}
models model "${items[@]}"

# --- answers and scores in all languages, the best learning rates, and the comparison with the paper
device_step evaluate "$output/evaluated" python -m recipes.lib.finetuning.evaluate "${evaluation[@]}" --longest-answer "$longest_answer"
((${#items[@]} == 1)) || comparison+=(--average)
step report "$output/results.md" python -m recipes.lib.report "${comparison[@]}"
show_results
