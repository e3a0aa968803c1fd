# The English models of the DIET paper (Chen et al. 2021): BERT-base with masked language modelling only, trained on
# sequences of 128 pieces with full sentences. The numbers are from its Table 7, unless a comment says otherwise. "Not
# stated" means that the paper does not state the value.
corpus=books_wiki
workers=8
shards=16
tokenizer=wordpiece       # with 30,000 pieces
tokenizer_path=published  # of uncased BERT
vocabulary=30522          # as BERT, for --tokenizer-path '', which learns them from the text
length=128
positions=512             # Table 6 counts parameters for 512 positions, although the sequences are shorter
masking=dynamic           # not stated
arch=posenc_bert_base
# The paper calls t5 Raffel. Its Linformer and DIET-ABS-LIN are the encodings
# --positions 128 --pos-enc 'learned+linformer[slots=32],diet-abs-lin[slots=32]', whose slots compress 128 columns
pos_enc='learned,shaw,t5,tupe,diet-rel,diet-abs[rank=128,share=layer-wise]'
batches=32
train=(
  --optimizer posenc_lamb            # not stated; You et al. 2020 (LAMB) use lr 0.0018 with batches of 4,096 sequences
  --fp16-no-flatten-grads            # LAMB needs the gradient of each tensor; only --precision fp16 would join them
  --lr 0.0018
  --lr-scheduler polynomial_decay    # You et al. 2020
  --weight-decay 0.01                # You et al. 2020
  --warmup-updates 12500             # 0.025 of the updates
  --max-update 500000
  --batch-size 128                   # times 32 batches: 4,096 sequences per update
  --dropout 0.1                      # not stated; the value of BERT
  --attention-dropout 0.1            # not stated; the value of BERT
  --validate-interval-updates 20000  # our choice
  --save-interval-updates 20000
)
