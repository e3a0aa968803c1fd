# The preset paper with three values of k (`clip`) for Shaw, as in Table 6 of Qu et al. 2021.
source "$HERE/conf/paper.sh"
pos_enc='shaw[clip=2,share=none],shaw[clip=4,share=none],shaw[clip=8,share=none]'
