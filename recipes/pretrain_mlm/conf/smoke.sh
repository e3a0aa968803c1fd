# Run every step in less than a minute, to test the installation. The scores do not show the quality of encodings.
corpus=builtin            # needs no download; --corpus DIR replaces it
jobs=2
threads=1                 # processor threads of each training
vocabulary=100
shards=2                  # two shards, so that the epochs alternate between them
length=64
masking=whole-word
arch=posenc_roberta_tiny
pos_enc=none,learned
train=(--encoder-layers 1 --encoder-embed-dim 32 --encoder-ffn-embed-dim 64 --encoder-attention-heads 2
  --optimizer adam --lr 0.005 --batch-size 16 --max-update 40 --validate-interval-updates 20
  --save-interval-updates 20 --log-interval 5)
