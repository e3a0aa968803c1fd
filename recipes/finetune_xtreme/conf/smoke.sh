# Run every step once in less than two minutes. This tests the recipe; the scores say nothing about an encoding.
source "$HERE/conf/small.sh"
pretrained=builtin                # a model pretrained with recipes/pretrain_mlm --preset smoke
pos_enc=learned
corpus=builtin                    # needs no download; the German files contain English, because this only tests the recipe
limit=400
limit_dev=40                      # questions in each language
length=64                         # the maximum length of the model
longest_question=32               # in pieces; longer questions are cut
stride=16                         # so that windows overlap
longest_answer=20
learning_rates=0.003              # at 3e-5 a model of width 32 with 40 updates of pretraining would not learn
epochs=2
segments=head
