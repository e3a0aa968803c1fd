# Fine-tune models of recipes/pretrain_mlm --preset small. On two cores, training on the 11,877 questions of the
# test set of Du et al. takes minutes.
version=1.1
pos_enc=learned,shaw
jobs=2                    # two training runs in parallel, ...
threads=1                 # ... with one thread each
length=128                # the maximum length of pretraining with preset small
longest_question=40       # leaves most of a window to the context
stride=64                 # BERT's 128 is longer than the context in a window
epochs=2
warmup=0.1
learning_rates=0.0005     # larger than the papers' 3e-5, because a model of width 128 needs larger steps
train=(--optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-8 --clip-norm 1.0 --batch-size 32 --dropout 0.1
  --attention-dropout 0.1)
pretraining='recipes/pretrain_mlm/run.sh --preset small'
