# Fine-tune models of recipes/pretrain_mlm --preset small. Each task takes minutes on two cores.
source "$HERE/conf/paper.sh"
tasks=SST-2,MRPC,RTE,CoLA,STS-B
pos_enc=learned,shaw
jobs=2                            # two training runs in parallel, ...
threads=1                         # ... with one thread each
length=128                        # the maximum length of pretraining with preset small
learning_rates=0.0003             # ten times the papers' value, because a model of width 128 needs larger steps
pretraining='recipes/pretrain_mlm/run.sh --preset small'
