# RoBERTa large from scratch with the schedule of its paper (Liu et al. 2019, Table 9): batches of 8,192 sequences, a peak
# learning rate of 0.0004, and 500,000 updates, of which 30,000 are warm-up. This preset needs many GPUs, for example:
# --launch torchrun --processes 8 --nodes 4 --rendezvous HOST:PORT
source "$HERE/conf/base.sh"
arch=posenc_roberta_large
batches=512
train+=(--lr 0.0004 --warmup-updates 30000
  --batch-size 16)  # times 512 batches: 8,192 sequences per update
