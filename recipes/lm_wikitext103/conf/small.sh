# For WikiText-2 and two cores: less than twenty minutes per encoding, with a narrow model and less than two epochs. Most
# of the time goes into the softmax over 33,280 types. docs/language-models.md has measured times. Values without a
# comment are our choice.
corpus=builtin            # for WikiText-2, give its folder as --corpus
jobs=2                    # number of training runs at the same time
threads=1                 # processor threads of each training
length=150                # as in the preset wt103, also the memory lengths
mem_train=150
mem_eval=0,150,640
eval_segment=64
eval_clamp=400
eval_same_length=true
eval_batch=10
arch=posenc_transformer_lm  # sizes below; the tiny and small architectures do not allow adaptive-one-matrix
pos_enc='xl[biases=tied],gcdf[biases=tied],lfhc[clip=16],shaw[clip=8,share=none],diet-rel[clip=150],t5,learned'
train=(
  --decoder-layers 3
  --decoder-embed-dim 128        # with 256 a step takes nearly three times as long
  --decoder-ffn-embed-dim 512
  --decoder-attention-heads 4
  --adaptive-one-matrix
  --adaptive-softmax-cutoff 2000,10000
  --criterion adaptive_loss
  --ddp-backend legacy_ddp       # required by the adaptive softmax
  --optimizer adam
  --clip-norm 0.25
  --lr 0.002
  --lr-scheduler cosine
  --warmup-updates 100           # post-norm layers need a warm-up
  --max-update 2000
  --batch-size 10                # streams of 150 tokens: 1,500 tokens per update, 1.4 epochs of WikiText-2
  --batch-size-valid 10
  --dropout 0.1
  --attention-dropout 0.0
  --validate-interval-updates 500
  --save-interval-updates 500
)
