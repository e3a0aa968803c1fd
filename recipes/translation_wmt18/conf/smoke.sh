# Run every step once in less than two minutes. This tests the recipe; the scores say nothing about an encoding.
corpus=builtin                    # needs no download; or --corpus DIR, of which the first 1,000 pairs are used
limit=1000
bounds=6                          # so that there is BLEU by length
direction=en-de
jobs=2
threads=1                         # more threads would compete for two cores
tokenizer=sentencepiece-bpe
vocabulary=300
average=2
arch=posenc_transformer_tiny
pos_enc=none,sinusoidal
train=(
  --encoder-layers 1
  --decoder-layers 1
  --encoder-embed-dim 32
  --encoder-attention-heads 2
  --decoder-attention-heads 2
  --share-all-embeddings
  --criterion label_smoothed_cross_entropy
  --label-smoothing 0.1
  --optimizer adam
  --lr 0.005
  --max-tokens 2000
  --max-epoch 2
)
generate=(
  --beam 2
  --max-len-b 20
)
