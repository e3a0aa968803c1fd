# Fine-tune models of recipes/pretrain_mlm --preset small. This takes minutes on two cores.
source "$HERE/conf/paper.sh"
tasks=XNLI                        # --corpus DIR needs --train-rows N if it has no training file for XNLI
pos_enc=learned,shaw
jobs=2                            # two training runs in parallel, ...
threads=1                         # ... with one thread each
length=128                        # the maximum length of pretraining with preset small
learning_rates=0.0003             # ten times the paper's value, because a model of width 128 needs larger steps
epochs=3
seeds=1
longest_question=40               # leaves most of a window to the context
stride=64                         # 128 is longer than the context in a window
pretraining='recipes/pretrain_mlm/run.sh --preset small'
