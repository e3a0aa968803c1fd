# The preset paper with four values of k (`clip`) for LFHC, as in Table 5 of Qu et al. 2021.
source "$HERE/conf/paper.sh"
pos_enc='lfhc[clip=2],lfhc[clip=4],lfhc[clip=8],lfhc[clip=16]'
