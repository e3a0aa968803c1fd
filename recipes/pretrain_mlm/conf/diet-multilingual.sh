# The multilingual models of the DIET paper (Chen et al. 2021): Wikipedia in 100 languages, sampled as for XLM. The other
# settings are those of the English models, and diet-english explains them.
source "$HERE/conf/diet-english.sh"
corpus=wiki100
prepare=(--smoothing 0.7) # the exponent of XLM
shards=64
tokenizer=sentencepiece
tokenizer_path=           # learned from the corpus
vocabulary=120000
length=512
positions=0               # as many as the sequences have
# Linformer and DIET-ABS-LIN of the paper are --pos-enc 'learned+linformer[slots=256],diet-abs-lin[slots=256]'
batches=128
train+=(
  --warmup-updates 3125              # 0.025 of the updates
  --max-update 125000
  --batch-size 32                    # times 128 batches: 4,096 sequences per update
)
