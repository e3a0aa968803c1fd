# Like m4m, with models that started from roberta-large: M4M paper, section 5.7 and Table 7.
source "$HERE/conf/m4m.sh"
batches=24                        # not stated; as in m1-m4-large
set_flag train batch-size 2       # times 24 batches: 48, as in m1-m4-large
papers='M4M/from roberta-large;M4M/roberta-large'
set_flag report like m4m-large
pretraining='recipes/pretrain_mlm/run.sh --preset m4m-large-roberta-large'
