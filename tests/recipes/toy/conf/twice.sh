# Two times as often as smoke.
source "$HERE/conf/smoke.sh"
repeats=4
train=(--rate 3)
