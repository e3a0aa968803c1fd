# Models of the M4M paper's small scale on SQuAD 1.1: section 5.3 and Table 2. The checkpoints come from
# recipes/pretrain_mlm --preset m4m-small.
source "$HERE/conf/m4m.sh"
pos_enc='learned,shaw,m2,m4,deberta,m4m,m4[reset=vector],learned+m4m'  # Table 2
papers='M4M/RoBERTa-base'
set_flag report like m4m-small
pretraining='recipes/pretrain_mlm/run.sh --preset m4m-small'
