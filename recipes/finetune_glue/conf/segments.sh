# DIET models with segments at the input or as a per-head bias: Chen et al. 2021, Tables 2 and 8. Segments are added in
# fine-tuning, so both kinds use the same pretrained model.
source "$HERE/conf/paper-diet.sh"
segments=input,head
pos_enc='diet-rel,diet-abs[rank=64,share=none]'
