# The large experiment of the M4M paper: the training of roberta-base continues for 500,000 updates on 54 GB of text, once
# with its absolute position embeddings and once with M4M instead. Give roberta-base as --init-from: the Hugging Face
# folder or fairseq's model.pt. The paper's third model is the preset m4m-c4. Values that only m1-m4 names are not stated
# in the paper.
source "$HERE/conf/m1-m4.sh"
corpus=books_wiki,openwebtext
init_model=roberta-base
shards=32
tokenizer=gpt2
masking=dynamic           # not stated; as for RoBERTa
arch=posenc_roberta_base
pos_enc=learned,m4m
batches=32                # from the paper: four p4d machines with eight GPUs each
train+=(
  --adam-betas '(0.9, 0.98)'  # not stated; the value of RoBERTa
  --clip-norm 0.0             # not stated; the value of RoBERTa
  --warmup-updates 1000       # not stated; our choice
  --max-update 500000         # from the paper
  --batch-size 15             # times 32 batches: 480 sequences per update, as in the paper
)
