# Models of base size on GLUE as in Huang et al. 2020 (M1 to M4), section 4.2 and Table 3.
source "$ROOT/recipes/lib/finetuning/protocols/m1-m4.sh"
tasks=MNLI,QQP,QNLI,SST-2,CoLA,STS-B,MRPC,RTE  # Table 3 has MNLI, QQP, SST-2 and MRPC
pos_enc=learned,shaw,m1,m2,m3,m4  # Table 3
corpus=glue
papers='M1-M4/BERT-base;M1-M4/BERT-base (Devlin et al., 2018)'  # the latter: learned+segments-input, test sets
set_flag report like paper
pretraining='recipes/pretrain_mlm/run.sh --preset m1-m4'
