# Like short, but trained on pairs of at most 12 words and scored on all lengths, to test extrapolation to longer
# sentences. The models have only as many positions as the training pairs need, so an encoding with one row per position
# refuses longer sentences.
source "$HERE/conf/short.sh"
train_words=12
bounds=12,15,18,24                # upper bounds of groups of test sentences, in words
train_length=19                   # 96 % of these pairs of Multi30k have at most 19 pieces per side, besides </s>
train+=(
  --max-source-positions 20
  --max-target-positions 20
)
