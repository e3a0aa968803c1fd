# BERT-base from scratch on SQuAD 1.1: Huang et al. 2020 (M1 to M4), section 4.1 and Table 2. The checkpoints come from
# recipes/pretrain_mlm --preset m1-m4. "README" means the README of the authors' models on Hugging Face.
version=1.1
pos_enc=learned,shaw,m1,m2,m3,m4  # Table 2
length=512                        # section 4
stride=128                        # README
separators=1                      # BERT's pairs: <s> question </s> context </s>
epochs=2                          # README
learning_rates=3e-5               # README
batches=8                         # eight GPUs
train=(
  --optimizer adam                # README: run_squad.py of Hugging Face; this and the next four values are its defaults
  --adam-betas '(0.9, 0.999)'
  --adam-eps 1e-8
  --weight-decay 0.0
  --clip-norm 1.0
  --batch-size 6                  # times 8 batches: 48, as in the README
  --dropout 0.1
  --attention-dropout 0.1
  --validate-interval-updates 2000
  --save-interval-updates 2000
)
papers='M1-M4/BERT-base;M1-M4/BERT-base (Devlin et al., 2018)'
set_flag report like m1-m4
pretraining='recipes/pretrain_mlm/run.sh --preset m1-m4'
