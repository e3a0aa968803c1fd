# The preset paper with four values of k (`clip`) for Shaw, as in Table 5 of Qu et al. 2021.
source "$HERE/conf/paper.sh"
pos_enc='shaw[clip=2,share=none],shaw[clip=4,share=none],shaw[clip=8,share=none],shaw[clip=16,share=none]'
