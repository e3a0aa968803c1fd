# The small experiment of the M4M paper: RoBERTa-base from scratch with 500,000 updates, which are 5.85 epochs of 15 GB.
# The paper's ablations are `m4[scale=...]` (its Table 3) and `m4[share=none]` (its Table 4). It uses a p4d machine with
# eight A100s. Values that only m1-m4 names are not stated in the paper.
source "$HERE/conf/m1-m4.sh"
tokenizer=gpt2            # the tokenizer of RoBERTa, with 50,265 types
masking=dynamic           # not stated; as for RoBERTa
arch=posenc_roberta_base  # 12 layers of dimension 768 (feed-forward layers 3,072) with 12 heads
pos_enc='learned,shaw,m2,m4,deberta,m4m,m4[reset=vector],learned+m4m'
train+=(
  --adam-betas '(0.9, 0.98)'  # not stated; the value of RoBERTa
  --clip-norm 0.0             # not stated; the value of RoBERTa
  --max-update 500000         # from the paper
  --batch-size 12             # times 8 batches: 96 sequences per update, as in the paper
)
