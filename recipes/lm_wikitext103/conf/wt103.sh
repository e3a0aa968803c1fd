# The language models of Qu et al. 2021 (LFHC and GCDF): the base model of Transformer-XL on WikiText-103. The setting
# biases=tied means that all layers share the biases u and v, as in Transformer-XL. Qu et al. use the name T5 for
# `diet-rel`, and state no clip distance: 150, the memory in training, is our choice. In this project, `t5` is the
# encoding of the T5 paper. "Not stated" means that Qu et al. do not state the value. They say that they keep
# Transformer-XL's setup.
corpus=wikitext103
seeds=1,2,3,4,5,6,7,8,9,10  # Qu et al. 2021, section 4.1: each experiment is the mean of ten runs
workers=8
length=150                # not stated; Transformer-XL's target length
mem_train=150             # Qu et al. 2021
mem_eval=150,640          # Qu et al. 2021: both lengths; the better perplexity is reported
eval_segment=64           # not stated; with memory 640 in the evaluation script of Transformer-XL
eval_clamp=400            # not stated; for xl and gcdf with memory 640, from the same script
eval_same_length=true     # not stated; with memory 640, from the same script
eval_batch=10             # not stated; from the same script
# Qu et al. 2021: 16 layers of dimension 410 (feed-forward layers 2,100) with 10 heads. The heads' dimension 41 and the
# bands of the adaptive softmax, which end at 20,000, 40,000 and 200,000 types, are those of Transformer-XL.
arch=posenc_transformer_lm_wt103
pos_enc='xl[biases=tied],gcdf[biases=tied],lfhc[clip=16],shaw[clip=8,share=none],diet-rel[clip=150],t5'
batches=1                 # processes x batch-size must stay 60: for 4 GPUs --batches 4 --train.batch-size 15
train=(
  --criterion adaptive_loss         # Transformer-XL: cross-entropy for the adaptive softmax
  --ddp-backend legacy_ddp          # required by the adaptive softmax, even in a single process
  --optimizer adam                  # Qu et al. 2021: AdamW; fairseq's adam is AdamW
  --adam-betas '(0.9, 0.999)'       # not stated; the default of PyTorch
  --adam-eps 1e-8                   # not stated; the default of PyTorch
  --weight-decay 0.01               # not stated; code of the same author for other tasks. Transformer-XL has 0
  --clip-norm 0.25                  # Qu et al. 2021, Table 4
  --lr 0.00025                      # Qu et al. 2021, Table 4
  --lr-scheduler cosine             # not stated; Transformer-XL: decays to 0 at the last update
  --warmup-updates 0                # Qu et al. 2021, Table 4
  --max-update 200000               # Qu et al. 2021, Table 4
  --batch-size 60                   # Qu et al. 2021, Table 4: number of streams
  --batch-size-valid 10             # not stated; from the evaluation script of Transformer-XL
  --dropout 0.0                     # Qu et al. 2021, Table 4; Transformer-XL has 0.1 (see wt103-dropout01)
  --activation-dropout 0.0
  --adaptive-softmax-dropout 0.0
  --attention-dropout 0.0           # not stated; as Transformer-XL
  --validate-interval-updates 4000  # Qu et al. 2021, Table 4
  --save-interval-updates 4000
)
