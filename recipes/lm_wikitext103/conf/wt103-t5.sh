# The preset wt103 with two encodings. Qu et al. 2021 call `diet-rel` T5: a scalar per head and distance up to M = 150.
# `t5` is the encoding of the T5 paper, with buckets of distances.
source "$HERE/conf/wt103.sh"
pos_enc='diet-rel[clip=150],t5'
