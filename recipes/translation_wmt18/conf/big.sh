# The big Transformer of Vaswani et al. (2017) on WMT18, with the schedule of that paper and the decoding of the DIET
# paper. On eight GPUs: --launch torchrun --processes 8.
source "$HERE/conf/base.sh"
average=20
arch=posenc_transformer_wmt_en_de_big
train+=(
  --lr 0.0005                     # 1024^-0.5 * 4000^-0.5, the peak of the paper's schedule
  --dropout 0.3                   # as in the paper for English-German
  --max-update 300000             # as in the paper
)
