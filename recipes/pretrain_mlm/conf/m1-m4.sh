# BERT-base from scratch with M1 to M4 (Huang et al. 2020). For the paper's ablation of k, use --pos-enc 'm4[clip=K]'.
# "Not stated" means that the paper does not state the value.
corpus=books_wiki         # BooksCorpus and English Wikipedia
workers=8
shards=16
tokenizer=wordpiece
tokenizer_path=published  # WordPiece with 30,522 pieces; the paper does not state that it is uncased
vocabulary=30522          # as BERT, for --tokenizer-path '', which learns them from the text
length=512                # from the paper; one segment, no next-sentence prediction
masking=whole-word        # from the paper
arch=posenc_bert_base     # from the paper: 12 layers of dimension 768 with 12 heads
pos_enc=learned,shaw,m1,m2,m3,m4
batches=8                 # from the paper: eight V100 GPUs
train=(
  --optimizer adam                   # from the paper
  --adam-betas '(0.9, 0.999)'        # not stated; the value of BERT
  --adam-eps 1e-6                    # not stated; the value of BERT
  --weight-decay 0.01                # not stated; the value of BERT
  --clip-norm 1.0                    # not stated; the value of BERT
  --lr 0.0001                        # from the paper: the initial learning rate
  --lr-scheduler polynomial_decay    # not stated; the linear decay of BERT
  --warmup-updates 10000             # not stated; the value of BERT
  --max-update 1000000               # not stated; the value of BERT
  --batch-size 20                    # times 8 batches: 160 sequences per update, as in the paper
  --dropout 0.1                      # not stated; the value of BERT
  --attention-dropout 0.1            # not stated; the value of BERT
  --validate-interval-updates 10000  # our choice
  --save-interval-updates 10000
)
