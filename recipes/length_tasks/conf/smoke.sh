# Run every step in about a minute, to test the installation. The scores do not show the quality of encodings.
tasks=copy,reverse-tags,scan-length
pos_enc=none,rope
jobs=2
threads=1
tested=1,2
longest=(--copy 6 --reverse-tags 6)
rows=(--train 2000 --valid 50 --within 50 --beyond 50)

OPTIMISATION=(--batch-size 64 --max-update 60 --optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 10
  --clip-norm 1.0 --dropout 0.0)
decoder=(--arch posenc_transformer_lm_tiny "${OPTIMISATION[@]}")
encoder=(--arch posenc_roberta_tiny --encoder-layers 2 --encoder-embed-dim 64 --encoder-ffn-embed-dim 128
  "${OPTIMISATION[@]}")
encoder_decoder=(--arch posenc_transformer_tiny --share-all-embeddings "${OPTIMISATION[@]}")
