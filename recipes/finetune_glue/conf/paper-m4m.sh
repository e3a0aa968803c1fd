# Models of base size on GLUE as in the M4M paper, section 5.6 and Tables 2 and 5: the best of three learning rates.
source "$ROOT/recipes/lib/finetuning/protocols/m4m.sh"
tasks=MNLI,QQP,QNLI,SST-2,CoLA,STS-B,MRPC,RTE  # Table 5; Table 2 has MNLI and SST-2
pos_enc=learned,m4m               # Table 5
corpus=glue
# A checkpoint does not say whether its training started from another model, so that all of the paper's models are shown.
papers='M4M/RoBERTa-base;M4M/roberta-base;M4M/from roberta-base'
set_flag report like paper-m4m
pretraining='recipes/pretrain_mlm/run.sh --preset m4m-large'
