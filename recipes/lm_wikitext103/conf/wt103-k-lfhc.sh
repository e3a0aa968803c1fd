# The preset wt103 with four values of k (`clip`) for LFHC, as in Table 7 of Qu et al. 2021.
source "$HERE/conf/wt103.sh"
pos_enc='lfhc[clip=4],lfhc[clip=8],lfhc[clip=12],lfhc[clip=16]'
