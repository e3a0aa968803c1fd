#!/usr/bin/env bash
# Fine-tune pretrained masked language models on SQuAD 1.1 or 2.0, whose answers are spans of a text, and score them as SQuAD's scripts do.
#   recipes/finetune_squad/run.sh --preset smoke
#   recipes/finetune_squad/run.sh --preset m1-m4 --pretrained results/pretrain_mlm --pos-enc learned,shaw,m4
source "$(dirname "$0")/../lib/recipe.sh"
source "$ROOT/recipes/lib/finetuning/models.sh"

preset=small              # settings in conf/NAME.sh
pretrained=''             # a run of recipes/pretrain_mlm, or a checkpoint or folder for each encoding; builtin pretrains tiny models
tokenizer=''              # tokenizer of the models (none: the one next to the model) [words|chars|spaces|PATH]
corpus=squad              # squad (downloaded), builtin (invented), a folder with {train,dev}.json, or one file that is split 8:2 [squad|builtin|PATH]
train_file=''             # training questions, instead of --corpus [FILE]
dev_file=''               # questions that are answered and scored, instead of --corpus [FILE]
version=1.1               # version of SQuAD; in 2.0, a question may have no answer [1.1|2.0]
learning_rates=3e-5       # learning rates to try; the best on the scored questions is reported [list number 0..]
epochs=2                  # numbers of epochs to try [list int 1..]
warmup=0                  # fraction of the updates in which the learning rate rises [number 0..1]
segments=none             # segment encodings to compare, for question and context [list none|input|head]
length=512                # longest window of question and context, in subword pieces [int 8..]
stride=128                # pieces between the starts of two windows of a context [int 1..]
longest_question=64       # longest question in pieces; longer ones are cut [int 1..]
longest_answer=30         # longest answer in pieces [int 1..]
n_best=20                 # answers per question in nbest_predictions.json [int 1..]
null_threshold=0          # SQuAD 2.0: no answer if that scores more than this number above the best span [number if version=2.0]
separators=2              # number of </s> between question and context: 1 as BERT, 2 as RoBERTa [int 1..2]
bad=refuse                # what to do with unusable questions: stop with a list, leave them out, or repair them [refuse|skip|repair]
limit=0                   # number of training questions to use (0: all) [int 0..]
limit_dev=0               # number of questions to score (0: all) [int 0..]
keep=last                 # checkpoint of a training to score [last|best]
raw=data/raw              # folder for downloads [if corpus=squad]
papers=''                 # papers and models whose numbers stand beside ours: PAPER/MODEL;PAPER/MODEL
report=()                 # flags of recipes/lib/report.py, such as --report.centre median
pretraining=''            # command that pretrains the models of the preset, without --pos-enc
options "$@"
[[ $corpus != builtin || $version == 1.1 ]] || fail "--version $version: the built-in questions all have answers. Use --version 1.1."
((length >= longest_question + separators + 3)) || fail "--length $length leaves no room for context after a question of --longest-question $longest_question pieces."
[[ -z $train_file$dev_file || (-n $train_file && -n $dev_file && ! $train_file -ef $dev_file) ]] || fail "--train-file and --dev-file: give two different files, or neither."

# --- models, questions, and the scores of answers without a model
questions=(--train "$output/text/train.json" --eval "$output/text/dev.json")
[[ $corpus$pretrained != *builtin* ]] || step text "$output/text" python -m recipes.lib.finetuning.builtin --tasks SQuAD --seed 1 --output "$output/text"
[[ $pretrained != builtin ]] || pretrain --corpus "$output/text/text" --vocabulary 120 --length 128 --seeds 1
find_models
case ${train_file:-$corpus} in
  builtin) ;;
  squad) questions=(--train "$raw/squad/train-v$version.json" --eval "$raw/squad/dev-v$version.json")
    step fetch - python "$ROOT/data-bin-scripts/fetch.py" squad/{train,dev}-v"$version".json --output "$raw" ;;
  "$corpus") questions=(--corpus "$corpus") && mapfile -t files < <(find -L "$corpus" -maxdepth 1 -name '*.json*' | sort) && reads "${files[@]}" ;;
  *) questions=(--train "$train_file" --eval "$dev_file") && reads "$train_file" "$dev_file" ;;
esac
prepare SQuAD prepare_spans.py --version "$version" "${questions[@]}" --stride "$stride" --longest-question "$longest_question" \
  --limit "$limit" --limit-eval "$limit_dev"
step baselines "$output/baselines.json" python -m recipes.lib.finetuning.baselines --run "$output" --items SQuAD --output "$output/baselines.json"

model() { # NAME ENCODING SEED SQuAD
  local best=()
  [[ $keep == last ]] || best=(--best-checkpoint-metric spans --maximize-best-checkpoint-metric) # windows with the right answer
  train_all "$1" "$2" "$3" "$output/data/SQuAD${suffix_of[$2]}" --task posenc_squad --criterion squad --segments "${segments_of[$2]}" "${best[@]}"
}
models model SQuAD
device_step evaluate "$output/evaluated" python -m recipes.lib.finetuning.evaluate "${evaluation[@]}" --n-best "$n_best" \
  --longest-answer "$longest_answer" --null-threshold "$null_threshold"
step report "$output/results.md" python -m recipes.lib.report "${comparison[@]}" --same version # the tasks name it
show_results
