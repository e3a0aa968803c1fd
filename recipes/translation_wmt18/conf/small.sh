# For corpora of tens of thousands of pairs, such as Multi30k (--corpus DIR): 3 + 3 layers of width 128, about twenty
# minutes per encoding on one core. docs/translation.md has the scores. All values are our choice, unless noted.
direction=en-de
jobs=2          # two training runs in parallel
threads=1                         # more threads would compete for two cores
workers=2
vocabulary=6000
average=5       # the last 5 of 11 epochs
arch=posenc_transformer_small
pos_enc=sinusoidal
train=(
  --share-all-embeddings
  --optimizer adam
  --adam-betas '(0.9, 0.98)'      # Vaswani et al. (2017)
  --lr 0.005                      # seven times that of the base model, because small models need larger steps
  --lr-scheduler inverse_sqrt
  --warmup-updates 400
  --dropout 0.1
  --criterion label_smoothed_cross_entropy
  --label-smoothing 0.1           # Vaswani et al. (2017)
  --max-tokens 2048
  --max-epoch 11
)
generate=(
  --beam 5
  --lenpen 1                      # fairseq divides the score by length^lenpen
  --max-tokens 4096
  --max-len-a 1                   # longest translation: the source's length + 50 (Vaswani et al. 2017); ...
  --max-len-b 50                  # ... fairseq's default is 200
)
