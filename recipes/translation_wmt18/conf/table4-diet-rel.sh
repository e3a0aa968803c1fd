# The base Transformer with relative scalars: row 'DIET-REL' of Table 4 of the DIET paper, otherwise as table4-vaswani.
source "$HERE/conf/table4-vaswani.sh"
pos_enc=diet-rel # a scalar per distance and head in each layer, as the paper recommends
