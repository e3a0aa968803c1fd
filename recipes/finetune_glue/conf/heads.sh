# M4 with one table for all heads and with one table per head: M4M paper, section 5.5 and Table 4.
source "$HERE/conf/paper-m4m.sh"
tasks=MNLI,SST-2                  # Table 4
pos_enc='m4,m4[share=none]'
pretraining='recipes/pretrain_mlm/run.sh --preset m4m-small'
