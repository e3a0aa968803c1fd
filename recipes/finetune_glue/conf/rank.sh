# DIET-ABS with ranks 64 and 128, with and without sharing between layers: Chen et al. 2021, Tables 8 and 9.
source "$HERE/conf/paper-diet.sh"
segments=head                     # per-head segments, as in the paper
pos_enc='diet-abs[rank=64,share=none],diet-abs[rank=64,share=layer-wise],diet-abs[rank=128,share=none],diet-abs[rank=128,share=layer-wise]'
