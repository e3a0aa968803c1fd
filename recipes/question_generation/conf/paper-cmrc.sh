# The preset paper, but for CMRC 2018 instead of SQuAD (Qu et al. 2021, Table 4).
source "$HERE/conf/paper.sh"
corpus=cmrc
encoder=chinese-roberta-wwm-ext   # give the folder of this model
pos_enc='diet-rel[clip=50],shaw[clip=4,share=none],lfhc[clip=2],xl,gcdf'
train+=(--warmup-updates 600 --total-num-update 4500 --max-update 4500
  --validate-interval-updates 300 --save-interval-updates 300)
