# The preset m1-m4 with one table per head (share=none), as Table 1 of Huang et al. 2020 counts it. In the preset m1-m4,
# the heads of a layer share their table.
source "$HERE/conf/m1-m4.sh"
pos_enc='shaw[share=none],m1[share=none],m2[share=none],m3[share=none],m4[share=none]'
