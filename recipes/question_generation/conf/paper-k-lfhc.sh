# The preset paper with three values of k (`clip`) for LFHC, as in Table 6 of Qu et al. 2021.
source "$HERE/conf/paper.sh"
pos_enc='lfhc[clip=2],lfhc[clip=4],lfhc[clip=8]'
