# The base Transformer on WMT18 with the schedule of Vaswani et al. (2017). The number of updates (250,000) and the
# decoding (beam 10) are those of the DIET paper, whose authors trained with tensor2tensor; the preset
# table4-vaswani has their schedule. On eight GPUs: --launch torchrun --processes 8.
corpus=wmt18
bad_lines=drop   # crawled text contains bad lines; the log of the step `text` counts them
direction=en-de
workers=8
vocabulary=32000
average=5
arch=posenc_transformer_wmt_en_de
pos_enc=sinusoidal
precision=float32 # fp16 and bf16 are faster on GPUs, but change the results
batches=8        # of max-tokens each, as on the eight GPUs of tensor2tensor's schedule
train=(
  --share-all-embeddings
  --criterion label_smoothed_cross_entropy
  --label-smoothing 0.1           # Vaswani et al. (2017); tensor2tensor's label_smoothing
  --optimizer adam
  --adam-betas '(0.9, 0.98)'
  --lr 0.0007                     # 512^-0.5 * 4000^-0.5, the peak of the schedule of Vaswani et al. (2017)
  --lr-scheduler inverse_sqrt
  --warmup-updates 4000
  --warmup-init-lr 1e-7           # our choice
  --dropout 0.1
  --max-tokens 4096               # tensor2tensor's batch_size on each of eight GPUs
  --max-update 250000             # as in the DIET paper
  --save-interval-updates 2500    # our choice: the last five checkpoints span 12,500 updates
)
generate=(
  --beam 10                       # as in the DIET paper
  --lenpen 0.6                    # divides scores by ((5 + length) / 6)^0.6 as GNMT and tensor2tensor do ...
  --lenpen-form gnmt              # ... while fairseq divides them by length^0.6
  --max-tokens 4096
  --max-len-a 1                   # longest translation: the source's length + 50 (Vaswani et al. 2017); ...
  --max-len-b 50                  # ... fairseq's default is 200
)
