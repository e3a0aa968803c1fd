# Huang et al. 2020, section 4.4: BERT-large (uncased, whole-word masking) without its absolute position embeddings, but
# with newly initialised M4, is trained for three epochs with masked language modelling. Give the Hugging Face folder of
# bert-large-uncased-whole-word-masking as --init-from; the preset uses its vocab.txt. "Not stated" means that the paper
# does not state the value.
corpus=books_wiki         # not stated, nor is the objective; both are those of BERT
init_model=bert-large-uncased-whole-word-masking
workers=8
shards=1                  # one shard, so that an epoch is the whole corpus
tokenizer=wordpiece
length=512                # the paper's k = 512 means that distances are not clipped
masking=whole-word        # not stated; as for the pretrained model
arch=posenc_bert_large
pos_enc=m4+segments-input # drops the absolute position embeddings, but keeps the segment embeddings
batches=8                 # for eight GPUs
train=(
  --optimizer adam                  # not stated for this experiment; as for the paper's base model
  --adam-betas '(0.9, 0.999)'       # not stated; the value of BERT
  --adam-eps 1e-6                   # not stated; the value of BERT
  --weight-decay 0.01               # not stated; the value of BERT
  --clip-norm 1.0                   # not stated; the value of BERT
  --lr 0.00005                      # from the paper: the initial learning rate
  --lr-scheduler inverse_sqrt       # our choice: does not need the number of updates; the paper states epochs
  --warmup-updates 1000             # not stated; our choice
  --max-epoch 3                     # from the paper
  --batch-size 20                   # not stated; as for the paper's base model
  --dropout 0.1                     # not stated; the value of BERT
  --attention-dropout 0.1           # not stated; the value of BERT
  --validate-interval-updates 5000  # our choice
  --save-interval-updates 5000
)
