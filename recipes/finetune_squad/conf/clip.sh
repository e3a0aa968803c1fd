# Clip distances k of M4 on SQuAD 1.1: Huang et al. 2020, section 4.3 and Table 4. Each value needs its own pretraining.
source "$HERE/conf/m1-m4.sh"
pos_enc='m4[clip=2],m4[clip=4],m4[clip=8],m4[clip=16],m4[clip=32],m4[clip=64],m4[clip=128],m4[clip=256],m4[clip=512]'
