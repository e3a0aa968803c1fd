# Run every step in less than a minute, to test the installation. The scores do not show the quality of encodings.
corpus=builtin              # needs no download; --corpus DIR replaces it
jobs=2
threads=1                 # processor threads of each training
length=16
mem_train=16
mem_eval=0,16,40
eval_segment=8
eval_clamp=20
eval_same_length=true
eval_batch=4
arch=posenc_transformer_lm  # sizes below; the tiny and small architectures do not allow adaptive-one-matrix
pos_enc=xl,learned
train=(
  --decoder-layers 1 --decoder-embed-dim 32 --decoder-ffn-embed-dim 64 --decoder-attention-heads 2
  --adaptive-one-matrix
  --adaptive-softmax-cutoff 20,40  # the text has a few hundred types
  --criterion adaptive_loss --ddp-backend legacy_ddp --optimizer adam --lr 0.01 --batch-size 8 --batch-size-valid 4
  --max-update 60 --validate-interval-updates 30 --save-interval-updates 30 --log-interval 10
)
