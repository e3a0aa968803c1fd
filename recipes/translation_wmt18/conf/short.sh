# Like small, but five minutes of training per encoding on one core (Multi30k). The translations are not good yet, but
# encodings can be compared. The first three encodings and the decoding are those of the DIET paper, Table 4.
source "$HERE/conf/small.sh"
average=3       # the checkpoints after 500, 550 and 600 updates; earlier ones are still much worse
pos_enc='sinusoidal,shaw[clip=20,values=true],diet-rel,diet-abs,t5,rope'
train+=(
  --max-epoch 0                   # no limit
  --max-update 600                # five minutes including validation on one of two busy cores (2.2 updates per second)
  --save-interval-updates 50
)
generate+=(
  --beam 10
  --lenpen 0.6                    # divides scores by ((5 + length) / 6)^0.6 as GNMT and tensor2tensor do ...
  --lenpen-form gnmt              # ... while fairseq divides them by length^0.6
)
