# Models that started from roberta-base on SQuAD 1.1, or 2.0 with --version 2.0: M4M paper, section 5.6 and Table 6.
source "$HERE/conf/m1-m4.sh"
pos_enc=learned,m4m               # Table 6
separators=2                      # RoBERTa's pairs: <s> question </s></s> context </s>
papers='M4M/from roberta-base;M4M/roberta-base;M4M/from roberta-base, on C4'
set_flag report like m4m
pretraining='recipes/pretrain_mlm/run.sh --preset m4m-large'
