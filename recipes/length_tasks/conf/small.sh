# Two layers of width 64: a training run takes 20 to 45 seconds on one core.
# The protocol is that of Kazemnejad et al. 2023 and Ruoss et al. 2023 at a small size: lengths of training are uniform up
# to the longest one, the test lengths go up to twice as far (SCAN: the published split), and nothing is chosen by the
# test set `beyond`. The values without a source are our choice.
tasks=copy,reverse,addition-hints,recall,scan-length
pos_enc=none,learned,sinusoidal,t5,shaw,xl,rope,rope-random,alibi,fire,fox
random_range=128            # about four times the longest test input (34 tokens), as in Ruoss et al. 2023
seeds=1,2,3
jobs=2
threads=1                   # processor threads of each training
tested=1/2,3/4,1,5/4,3/2,7/4,2
longest=(
  --copy 6                  # Kazemnejad et al. train up to 20, with 12 layers and 40,000 updates
  --reverse 6
  --addition-hints 2        # numbers of up to 4 digits are tested
  --recall 4                # with 8 pairs, most models do not learn the task within 1,200 updates
)
rows=(--train 50000
  --valid 200               # watched during training; nothing is chosen by it
  --within 100 --beyond 100)

OPTIMISATION=(--optimizer adam --adam-betas '(0.9, 0.98)'
  --lr 0.004                # widths this small need a higher rate than the papers' models
  --lr-scheduler polynomial_decay --warmup-updates 100 --clip-norm 1.0
  --dropout 0.0 --attention-dropout 0.0)  # the trainings are too short to overfit
UPDATES=(--batch-size 64 --max-update 1200 --total-num-update 1200)  # the learning rate falls to 0
decoder=(--arch posenc_transformer_lm_tiny --decoder-layers 2 --decoder-attention-heads 4 --decoder-ffn-embed-dim 256
  "${UPDATES[@]}" "${OPTIMISATION[@]}")
encoder=(--arch posenc_roberta_tiny --encoder-layers 2 --encoder-embed-dim 64 --encoder-ffn-embed-dim 256
  "${UPDATES[@]}" "${OPTIMISATION[@]}")
# The models of SCAN have four layers: with 64 examples and 1,200 updates, some training runs would take a minute.
encoder_decoder=(--arch posenc_transformer_tiny --encoder-attention-heads 4 --decoder-attention-heads 4
  --share-all-embeddings --batch-size 48 --max-update 900 --total-num-update 900 "${OPTIMISATION[@]}")
