# The classifiers of Qu et al. 2021 (LFHC, GCDF): values of their section 4.1, appendix A.3 and Table 4, unless a comment
# says otherwise.
tasks=SST-2
glove=published                   # GloVe 840B.300d
more_than=3                       # keep words that occur more than 3 times and have a GloVe vector
length=512                        # not stated; our choice
arch=posenc_classifier            # 8 layers of dimension 512 (feed-forward layers 2,048) with 8 heads
pos_enc='diet-rel,shaw[clip=4,share=none],lfhc[clip=4],xl,gcdf' # the paper's T5 is diet-rel; with the best k for SST-2
seeds=1,2,3,4,5,6,7,8,9,10        # means of ten runs
# TASK:updates:warm-up updates:updates between validations
schedule=IMDB:4000:200:200,SST-2:20000:1000:500,SNLI:80000:5000:5000
schedule+=,QNLI:40000:4000:1000,QQP:80000:4000:4000,MNLI:120000:4000:4000
schedule+=,others:20000:1000:500  # our choice for data that the paper does not have
train=(
  --batch-size 64
  --optimizer adam                # AdamW; fairseq's adam is AdamW
  --adam-betas '(0.9, 0.999)'     # not stated; the default of PyTorch
  --weight-decay 0.01             # not stated; the default of PyTorch's AdamW
  --lr 2e-5
  --lr-scheduler polynomial_decay # warm-up steps are stated, the decay is not: linear, as in code of the same author for
  --end-learning-rate 1e-9        # another task, as is its end
  --clip-norm 0.25
  --dropout 0.15
  --attention-dropout 0.15        # not stated separately
  --activation-fn gelu            # not stated
)
