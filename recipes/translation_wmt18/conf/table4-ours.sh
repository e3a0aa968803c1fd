# Three encodings that are not in Table 4 of the DIET paper, trained as table4-vaswani for comparison with this table.
source "$HERE/conf/table4-vaswani.sh"
pos_enc='diet-abs[rank=128],t5,rope' # rank 128 shared between layers is the paper's best for BERT
