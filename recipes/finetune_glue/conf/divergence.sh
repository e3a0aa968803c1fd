# Raffel and TUPE at two learning rates: M4M paper, section 5.3. The paper reports that fine-tuning diverges at 3e-5, the
# rate of the other encodings, and needs a lower rate, for example 2.5e-5 on SQuAD 1.1; it states no rate for GLUE. A
# training run that diverges is reported with its update and loss.
source "$HERE/conf/paper-m4m.sh"
tasks=MNLI,SST-2                  # the paper says GLUE; Table 2 has these two tasks for the other encodings
learning_rates=3e-5,2.5e-5
pos_enc=raffel,tupe
pretraining='recipes/pretrain_mlm/run.sh --preset m4m-small'
