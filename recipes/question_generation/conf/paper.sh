# Question generation on SQuAD: values of Qu et al. 2021 (LFHC and GCDF; section 4.1, appendix A.3 and Table 4), unless a
# comment says otherwise.
corpus=squad                      # version 1.1; the paper cites 2.0, where a third of the questions have no answer
encoder=bert-base-cased           # give the folder of this model
seeds=1,2,3,4,5,6,7,8,9,10        # means of ten runs
workers=8
bad=repair                        # our choice
context=paragraph                 # not stated, as the order `answer </s> context` and the three lengths: they come from
length=512                        # code of the same author for another task
longest_answer=100
longest_question=50
vocabulary=20000                  # our choice; has an effect with --encoder scratch only
copy_mechanism=copynet            # the paper cites Gu et al. 2016
arch=posenc_question_generation   # the decoder has 3 layers of dimension 768 (feed-forward layers 3,072) with 12 heads
# The paper's T5 has a scalar for each distance: diet-rel. Its clip of 50 (the longest question) is our choice.
pos_enc='diet-rel[clip=50],shaw[clip=8,share=none],lfhc[clip=2],xl,gcdf'
train=(
  --optimizer adam                # AdamW; fairseq's adam is AdamW
  --adam-betas '(0.9, 0.999)'     # not stated; the default of PyTorch
  --adam-eps 1e-8                 # not stated; the default of PyTorch
  --weight-decay 0.01             # not stated; the default of PyTorch's AdamW
  --lr 2e-5
  --lr-scheduler polynomial_decay # warm-up steps are stated, the decay is not: linear to 1e-9, as in code of the same
  --end-learning-rate 1e-9        # author for another task
  --warmup-updates 4000
  --total-num-update 30000
  --max-update 30000
  --clip-norm 0.25
  --dropout 0.1
  --batch-size 32
  --validate-interval 100000      # do not validate at the ends of epochs
  --validate-interval-updates 2000
  --save-interval-updates 2000
  --eval-rouge                    # greedy questions in validation: not stated, from code of the same author
  --best-checkpoint-metric rouge_l
  --maximize-best-checkpoint-metric
)
generate=(
  --beam 5
  --lenpen 0.6                    # the formula is not stated; ours is log p / length^0.6, with </s> in the length
  --no-repeat-ngram-size 3
  --unkpen 10000                  # our choice: never generate <unk>
  --batch-size 32
)
