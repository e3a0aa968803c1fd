# Run every step in less than a minute, to test the installation. The scores do not show the quality of encodings:
# 30 updates are too few to learn anything.
source "$HERE/conf/demo.sh"
sizes=1000,50,50
vocabulary=300
pos_enc=none,sinusoidal
train=(
  --encoder-layers 1
  --decoder-layers 1
  --encoder-embed-dim 32
  --decoder-embed-dim 32
  --encoder-ffn-embed-dim 64
  --decoder-ffn-embed-dim 64
  --encoder-attention-heads 2
  --decoder-attention-heads 2
  --share-all-embeddings
  --max-source-positions 64
  --max-target-positions 64
  --optimizer adam
  --lr 0.005
  --max-update 30
  --max-tokens 1000
)
generate=(--beam 1 --max-len-b 20)
