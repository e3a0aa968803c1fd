# Scale factors s of M4 on SQuAD 1.1: M4M paper, section 5.4 and Table 3. Each value needs its own pretraining.
source "$HERE/conf/m4m-small.sh"
pos_enc='m4[scale=1],m4[scale=2],m4[scale=3],m4[scale=4],m4[scale=6],m4[scale=9]'
