# Run every step in less than a minute, to test the installation. The scores do not show the quality of encodings.
corpus=builtin
jobs=2
threads=1              # processor threads of each training
more_than=0
arch=posenc_classifier_tiny
pos_enc=none,shaw
seeds=1,2
schedule=others:60:10:30
train=(--batch-size 32 --optimizer adam --adam-betas '(0.9, 0.999)' --lr 0.003 --lr-scheduler polynomial_decay --dropout 0.1)
