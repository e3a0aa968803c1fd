# BERT-large with M4 on SQuAD 1.1: Huang et al. 2020, section 4.4 and Table 5. The checkpoint comes from
# recipes/pretrain_mlm --preset m1-m4-warm-start.
source "$HERE/conf/m1-m4.sh"
pos_enc=m4+segments-input         # Table 5; the model keeps BERT's segments
batches=24                        # three batches on each of eight GPUs
set_flag train batch-size 2       # times 24 batches: 48, as in the authors' README
papers='M1-M4/BERT-large;M1-M4/BERT-large (Devlin et al., 2018)'
set_flag report like m1-m4-large
pretraining='recipes/pretrain_mlm/run.sh --preset m1-m4-warm-start'
