# Every step once, in a few seconds.
train=(--lr 0.5 --share-all-embeddings --adam-betas '(0.9, 0.98)')
