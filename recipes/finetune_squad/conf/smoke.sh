# Run every step once in less than two minutes on two cores. This tests the recipe; the scores say nothing about an
# encoding.
corpus=builtin            # needs no download; or --train-file and --dev-file
pretrained=builtin        # tiny models that the recipe pretrains on the same texts; or --pretrained MODEL
pos_enc=learned,shaw
jobs=2
threads=1
limit=600                 # number of training questions, for any --corpus
limit_dev=60
length=96                 # shorter than the contexts, so that windows overlap
longest_question=40
stride=32
longest_answer=20
epochs=2
warmup=0.1
learning_rates=0.003
train=(--optimizer adam --clip-norm 1.0 --batch-size 32 --dropout 0.0 --attention-dropout 0.0 --log-interval 5)
