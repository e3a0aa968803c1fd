# The size of Kazemnejad et al. 2023 (their Appendix D): decoders of 12 layers and width 768, lengths up to 20, three seeds.
source "$HERE/conf/small.sh"
tasks=copy,reverse,sort,parity,addition,addition-reversed,addition-hints
random_range=2048           # Ruoss et al. 2023
longest=(--copy 20 --reverse 20 --sort 20 --parity 20
  --addition 8 --addition-reversed 8 --addition-hints 8  # both numbers and the sum have 25 digits together
  --recall 8)
rows=(--train 100000 --valid 1000 --within 1000 --beyond 1000)

UPDATES=(--batch-size 64 --max-update 40000 --total-num-update 40000
  --warmup-updates 2400     # 6 % of the updates
  --adam-betas '(0.9, 0.999)' --weight-decay 0.05 --lr 0.00003 --dropout 0.1 --attention-dropout 0.1)
decoder=(--arch posenc_transformer_lm --decoder-layers 12 --decoder-embed-dim 768 --decoder-ffn-embed-dim 3072
  --decoder-attention-heads 12 --share-decoder-input-output-embed "${OPTIMISATION[@]}" "${UPDATES[@]}")
encoder+=("${UPDATES[@]}")
encoder_decoder+=("${UPDATES[@]}")
