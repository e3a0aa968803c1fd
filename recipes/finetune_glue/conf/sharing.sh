# DIET-REL with scalars for each layer and head, shared between layers, or shared between heads: Chen et al. 2021,
# Tables 8 and 9.
source "$HERE/conf/rank.sh"
pos_enc='diet-rel,diet-rel[share=layer-wise],diet-rel[share=head-wise]'
