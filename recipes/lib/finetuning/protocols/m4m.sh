# Fine-tuning as in the M4M paper, section 5.6. Values that the paper does not state are RoBERTa's.
learning_rates=2e-5,3e-5,4e-5     # section 5.6; the best one on the development set is reported
epochs=3                          # section 5.6
segments=none                     # section 5.1: pretraining uses one segment
length=512                        # not stated; from fairseq's RoBERTa
separators=2                      # RoBERTa's pairs: <s> a </s></s> b </s>
keep=last                         # not stated
warmup=0.06                       # not stated; RoBERTa's value
train=(
  --batch-size 32                 # section 5.6
  --optimizer adam
  --adam-betas '(0.9, 0.98)'      # not stated; this and the following values are RoBERTa's
  --adam-eps 1e-6
  --weight-decay 0.1
  --clip-norm 0.0
  --dropout 0.1
  --attention-dropout 0.1
  --validate-interval-updates 2000 # not stated; only for resuming, because the last checkpoint is used
  --save-interval-updates 2000
)
