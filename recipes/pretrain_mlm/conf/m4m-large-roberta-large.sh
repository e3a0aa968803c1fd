# The large experiment of the M4M paper, starting from roberta-large. Give the folder of roberta-large as --init-from.
source "$HERE/conf/m4m-large.sh"
init_model=roberta-large
arch=posenc_roberta_large
pos_enc=m4m
train+=(--batch-size 6)  # times 32 batches: 192 sequences per update, as in the paper
