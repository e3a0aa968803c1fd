# Like m1-m4-large, with windows of 704 pieces: Huang et al. 2020, Table 5 (M4 with k = 512).
source "$HERE/conf/m1-m4-large.sh"
length=704                        # beyond the 512 positions of pretraining, so only for encodings that extend
set_flag report like m1-m4-large-704
