# Fine-tuning as in Huang et al. 2020 (M1 to M4), section 4.2. Values that the paper does not state are BERT's.
learning_rates=3e-5               # section 4.2
epochs=3                          # section 4.2
segments=none                     # section 4: pretraining uses one segment
length=128                        # not stated; BERT's value, as in DIET, Table 7
separators=1                      # BERT's pairs: <s> a </s> b </s>
keep=last                         # not stated; BERT's value
warmup=0.1                        # not stated; BERT's value, as in DIET, Table 7
train=(
  --batch-size 32                 # section 4.2, as in DIET, Table 7
  --optimizer adam
  --adam-betas '(0.9, 0.999)'     # not stated; this and the following values are BERT's
  --adam-eps 1e-6
  --weight-decay 0.01
  --clip-norm 1.0
  --dropout 0.1
  --attention-dropout 0.1
  --pooler-dropout 0.1
  --validate-interval-updates 2000 # not stated; only for resuming, because the last checkpoint is used
  --save-interval-updates 2000
)
