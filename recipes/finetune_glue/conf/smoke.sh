# Run every step once in less than two minutes. This tests the recipe; the scores say nothing about an encoding.
source "$HERE/conf/paper.sh"
pretrained=builtin                # a model pretrained with recipes/pretrain_mlm --preset smoke
pos_enc=learned
tasks=SST-2
corpus=builtin                    # needs no download; or --corpus DIR
jobs=2
threads=1
limit=400                         # number of training rows, for any --corpus
length=64                         # the maximum length of the model
learning_rates=0.003              # at 3e-5 a model of width 32 with 40 updates of pretraining would not learn
