# RoBERTa base from scratch with the schedule of its paper (Liu et al. 2019, Table 9): batches of 8,192 sequences, a peak
# learning rate of 0.0006, and 500,000 updates, of which 24,000 are warm-up. This preset needs many GPUs, for example:
# --launch torchrun --processes 8 --nodes 4 --rendezvous HOST:PORT
corpus=books_wiki         # RoBERTa has ten times as much text
workers=8
shards=16
tokenizer=gpt2            # RoBERTa's
tokenizer_path=published
length=512
arch=posenc_roberta_base
pos_enc=learned
batches=256
train=(
  --optimizer adam
  --adam-betas '(0.9, 0.98)'
  --adam-eps 1e-6
  --weight-decay 0.01
  --lr 0.0006
  --lr-scheduler polynomial_decay
  --warmup-updates 24000
  --max-update 500000
  --batch-size 32                   # times 256 batches: 8,192 sequences per update
  --dropout 0.1
  --attention-dropout 0.1
  --validate-interval-updates 5000  # our choice
  --save-interval-updates 5000
)
