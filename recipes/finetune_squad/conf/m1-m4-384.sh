# Like m1-m4, with windows of 384 pieces. The authors' README on Hugging Face reports scores of M4 for this length.
source "$HERE/conf/m1-m4.sh"
length=384                        # from the README
set_flag report like m1-m4-384
