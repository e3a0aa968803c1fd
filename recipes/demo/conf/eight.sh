# Train eight encodings for longer, in about four minutes on two cores. docs/translation.md shows these scores.
source "$HERE/conf/demo.sh"
pos_enc=none,learned,sinusoidal,shaw,t5,m2,rope,alibi
train+=(
  --total-num-update 700          # 900 take a quarter longer; then all encodings but `learned` (95) reach 99 BLEU
  --max-update 700
)
