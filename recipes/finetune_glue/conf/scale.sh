# Scale factors s of M4: M4M paper, section 5.4 and Table 3. Each value needs its own pretraining.
source "$HERE/conf/heads.sh"      # Table 3 has the same tasks
pos_enc='m4[scale=1],m4[scale=2],m4[scale=3],m4[scale=4],m4[scale=6],m4[scale=9]'
