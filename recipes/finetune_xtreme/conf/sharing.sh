# Multilingual DIET-REL with scalars for each layer and head, shared between heads, or shared between layers: Chen et
# al. 2021, Tables 3 and 5.
source "$HERE/conf/paper.sh"
segments=input,head               # Tables 3 and 5
pos_enc='diet-rel,diet-rel[share=head-wise],diet-rel[share=layer-wise]'
