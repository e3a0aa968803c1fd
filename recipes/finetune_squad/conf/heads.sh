# M4 with one table for all heads and with one table per head on SQuAD 1.1: M4M paper, section 5.5 and Table 4.
source "$HERE/conf/m4m-small.sh"
pos_enc='m4,m4[share=none]'
