# For corpora of a few megabytes and two cores: a tiny RoBERTa, which trains in five to ten minutes per encoding. We chose
# the learning rate, pre-norm layers and the small batch because the loss then leaves its first plateau soonest;
# docs/masked-lm.md has two of these losses.
corpus=builtin
jobs=2                    # number of training runs at the same time
threads=1                 # processor threads of each training
workers=2
tokenizer=sentencepiece
vocabulary=8000           # with 50,265 types the softmax would take most of the time
length=128
masking=dynamic
arch=posenc_roberta_tiny
pos_enc=none,learned,shaw
train=(
  --encoder-normalize-before       # post-norm layers leave the plateau later, and need a third of this learning rate
  --optimizer adam
  --adam-betas '(0.9, 0.98)'       # the value of RoBERTa
  --adam-eps 1e-6
  --weight-decay 0.01
  --clip-norm 1.0
  --lr 0.003
  --lr-scheduler polynomial_decay
  --warmup-updates 200
  --max-update 700
  --batch-size 16                  # with 32 the loss leaves the plateau after the same number of updates
  --dropout 0.1
  --attention-dropout 0.1
  --validate-interval-updates 100
  --save-interval-updates 200
)
