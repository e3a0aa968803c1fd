# Run every step in less than two minutes on two cores, to test the installation. The scores do not show the quality of
# encodings.
corpus=builtin
jobs=2
threads=1                         # processor threads of each training
limit=600                         # use the first 600 questions only
limit_valid=60
bad=repair                        # published files have misplaced answers
context=sentence
vocabulary=200                    # so small that most names can only be copied
length=64
longest_answer=20
encoder=scratch
arch=posenc_question_generation_tiny
pos_enc='shaw[clip=8,share=none],t5'
train=(--optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 20 --clip-norm 0.25 --dropout 0.1
  --batch-size 32 --max-update 60 --validate-interval 100000 --validate-interval-updates 30 --save-interval-updates 30
  --eval-rouge)
generate=(--beam 5 --lenpen 0.6 --no-repeat-ngram-size 3 --unkpen 10000 --batch-size 32)
