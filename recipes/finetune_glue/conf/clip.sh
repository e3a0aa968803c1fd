# Clip distances k of M4 on the GLUE tasks of Huang et al. 2020, Table 3. The paper itself varies k on SQuAD (Table 4).
# Each value needs its own pretraining.
source "$HERE/conf/paper.sh"
tasks=MNLI,QQP,SST-2,MRPC
pos_enc='m4[clip=2],m4[clip=4],m4[clip=8],m4[clip=16],m4[clip=32],m4[clip=64],m4[clip=128],m4[clip=256],m4[clip=512]'
