# The demo trains four encodings in about two minutes on two cores; the preset `eight` trains more for longer. If you
# change a number here and start the demo again, it repeats only the steps that depend on this number.
corpus=builtin
sizes=12000,300,500               # pairs for training, validation and test; recipes/lib/invented has the grammar
direction=en-inv                  # English and the invented language
device=cpu                        # the models are so small that a GPU would not be faster
jobs=2                            # number of training runs at the same time, with one thread each
threads=1                         # more threads would compete for two cores
tokenizer=sentencepiece-bpe
vocabulary=400                    # for both languages together; most stems and endings then are one piece
length=1023
average=1                         # the learning rate decays to zero, so averaging would not help
arch=posenc_transformer_tiny
pos_enc=none,sinusoidal,shaw,rope
train=(
  --encoder-layers 2
  --decoder-layers 2
  --encoder-embed-dim 64
  --decoder-embed-dim 64
  --encoder-ffn-embed-dim 128
  --decoder-ffn-embed-dim 128
  --encoder-attention-heads 4
  --decoder-attention-heads 4
  --share-all-embeddings          # one vocabulary for both languages
  --max-source-positions 64       # the longest sentence has about 40 pieces; all 64 learned positions count as ...
  --max-target-positions 64       # ... parameters
  --dropout 0                     # the model sees every sentence only a few times, so it does not overfit
  --criterion label_smoothed_cross_entropy
  --label-smoothing 0
  --optimizer adam
  --adam-betas '(0.9, 0.98)'
  --lr 0.005                      # we also tried 0.008: it learns no faster, and post-norm layers become unstable
  --lr-scheduler polynomial_decay # decays to zero, because a short run must not end with a high learning rate
  --warmup-updates 100
  --total-num-update 500
  --max-update 500
  --max-tokens 1000               # small batches, because such a short training needs many updates
)
generate=(--beam 4 --max-tokens 4000)
