# Multilingual DIET-ABS with several ranks, with and without sharing between layers: Chen et al. 2021, Table 5.
source "$HERE/conf/paper.sh"
segments=head                     # Table 5; it also has rank 64 with --segments input
pos_enc='diet-abs[rank=64,share=none],diet-abs[rank=128,share=none],diet-abs[rank=512,share=none]'
pos_enc+=',diet-abs[rank=64,share=layer-wise],diet-abs[rank=128,share=layer-wise],diet-abs[rank=256,share=layer-wise]'
pos_enc+=',diet-abs[rank=512,share=layer-wise]'
