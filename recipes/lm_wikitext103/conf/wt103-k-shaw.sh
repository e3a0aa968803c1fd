# The preset wt103 with four values of k (`clip`) for Shaw, as in Table 7 of Qu et al. 2021.
source "$HERE/conf/wt103.sh"
pos_enc='shaw[clip=4,share=none],shaw[clip=8,share=none],shaw[clip=12,share=none],shaw[clip=16,share=none]'
