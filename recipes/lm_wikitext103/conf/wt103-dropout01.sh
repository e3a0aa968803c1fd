# The preset wt103 with the dropout of Transformer-XL, whose setup the text of Qu et al. 2021 names.
source "$HERE/conf/wt103.sh"
# Transformer-XL has 0.1; Table 4 of Qu et al. 2021 states 0.00 (wt103)
train+=(--dropout 0.1 --activation-dropout 0.1 --adaptive-softmax-dropout 0.1)
