# Twice the words of smoke.
source "$HERE/conf/smoke.sh"
repeats=4
train+=(--lr 0.25)
