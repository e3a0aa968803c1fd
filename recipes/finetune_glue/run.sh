#!/usr/bin/env bash
# Fine-tune pretrained masked language models on tasks of GLUE, score the development sets, and write files for GLUE's server.
#   recipes/finetune_glue/run.sh --preset smoke
#   recipes/finetune_glue/run.sh --preset paper --pretrained results/pretrain_mlm --pos-enc learned,shaw,m4 --tasks MNLI,SST-2
source "$(dirname "$0")/../lib/recipe.sh"
source "$ROOT/recipes/lib/finetuning/models.sh"

preset=small              # settings in conf/NAME.sh
pretrained=''             # a run of recipes/pretrain_mlm, or a checkpoint or folder for each encoding; builtin pretrains a tiny model
tokenizer=''              # tokenizer of the models (none: the one next to the model) [PATH]
corpus=glue               # glue (downloaded), builtin (invented rows), or a folder with TASK/{train,dev,test}.tsv [glue|builtin|DIR]
tasks=MNLI,QQP,QNLI,SST-2,CoLA,STS-B,MRPC,RTE  # tasks [list MNLI|QQP|QNLI|SST-2|CoLA|STS-B|MRPC|RTE]
learning_rates=3e-5       # learning rates to try; the best on the development set is reported [list number 0..]
epochs=3                  # numbers of epochs to try; the best on the development set is reported [list int 1..]
warmup=0.1                # fraction of the updates in which the learning rate rises [number 0..1]
segments=none             # segment encodings to compare, for pairs of sentences [list none|input|head]
length=128                # longest input in subword pieces; longer ones are cut [int 8..]
separators=1              # number of </s> between the sentences of a pair: 1 as BERT, 2 as RoBERTa [int 1..2]
bad=refuse                # what to do with unusable rows: stop with a list, or leave them out [refuse|skip]
limit=0                   # number of training rows to use (0: all) [int 0..]
keep=last                 # checkpoint of a training to score [last|best]
raw=data/raw              # folder for downloads [if corpus=glue]
papers=''                 # papers and models whose numbers stand beside ours: PAPER/MODEL;PAPER/MODEL
report=()                 # flags of recipes/lib/report.py, such as --report.centre median
pretraining=''            # command that pretrains the models of the preset, without --pos-enc
options "$@"

# --- models, rows, and the score of a constant answer
[[ $pretrained != builtin ]] || pretrain --seeds 1
find_models
declare -A flags_of=() # flags of fairseq-train for each task
lines=$(python -m recipes.lib.finetuning.tasks --task ${tasks//,/ } --papers "$papers" --separators "$separators")
while read -r task flags; do flags_of[$task]=$flags; done <<<"$lines"
rows=$corpus
case $corpus in
  builtin) rows=$output/text && step text "$rows" python -m recipes.lib.finetuning.builtin --tasks "$tasks" --seed 1 --output "$rows" ;;
  glue) rows=$raw/glue ;;
  *) mapfile -t files < <(find -L "$corpus" -maxdepth 2 -name '*.t[sx][vt]*' | sort) && reads "${files[@]}" ;;
esac
for task in ${tasks//,/ }; do
  files=("glue/$task*")
  case $task in MRPC) files=('glue/m*') ;; MNLI) files=('glue/MNLI*' glue/AX.tsv) ;; esac
  [[ $corpus != glue ]] || step "fetch:$task" - python "$ROOT/data-bin-scripts/fetch.py" "${files[@]}" --output "$raw"
  prepare "$task" prepare_glue.py --task "$task" --corpus "$rows" --limit "$limit"
done
step baselines "$output/baselines.json" python -m recipes.lib.finetuning.baselines --run "$output" --items "$tasks" \
  --papers "$papers" --output "$output/baselines.json"

# --- a training for each task, encoding and seed, and for each learning rate and number of epochs
model() { # NAME ENCODING SEED TASK
  local kind=${segments_of[$2]} task
  read -ra task <<<"${flags_of[$4]}"
  [[ $4 != SST-2 && $4 != CoLA ]] || kind=none # single sentences
  train_all "$1" "$2" "$3" "$output/data/$4${suffix_of[$2]}" "${task[@]}" --segments "$kind"
}
models model ${tasks//,/ }

# --- scores, the best learning rates, and the comparison with the papers
device_step evaluate "$output/evaluated" python -m recipes.lib.finetuning.evaluate "${evaluation[@]}"
[[ $tasks != *,* ]] || comparison+=(--average)
step report "$output/results.md" python -m recipes.lib.report "${comparison[@]}"
show_results
