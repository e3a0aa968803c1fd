#!/usr/bin/env bash
# This plain script has the commands that recipes/pretrain_mlm/run.sh runs with the preset m1-m4.
# Usage: recipes/pretrain_mlm/plain/m1-m4.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/pretrain_mlm-m1-m4-plain}
: "${BOOKS:?set this variable to the value of --books of run.sh}"
mkdir -p "$OUT/logs"

# check
python -m recipes.lib.check_models --output "$OUT/checked.json" --pos-enc learned --pos-enc shaw --pos-enc m1 \
    --pos-enc m2 --pos-enc m3 --pos-enc m4 -- --user-dir fairseq_posenc --task posenc_masked_lm \
    --criterion masked_lm --arch posenc_bert_base --sample-break-mode complete --tokens-per-sample 512 \
    --max-positions 512 --mask-whole-words --subwords wordpiece --total-num-update 1000000 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr 0.0001 --lr-scheduler polynomial_decay \
    --warmup-updates 10000 --max-update 1000000 --batch-size 20 --dropout 0.1 --attention-dropout 0.1 \
    --validate-interval-updates 10000 --save-interval-updates 10000

# fetch-wikipedia
python data-bin-scripts/fetch.py wikipedia --output data/raw --no-unpack

# fetch-bert-vocab
python data-bin-scripts/fetch.py bert-vocab --output data/raw

# corpus
python data-bin-scripts/prepare_corpus.py --train data/raw/wikipedia "file:$BOOKS" --valid-part 0.005 \
    --output "$OUT/data" --tokenizer wordpiece --tokenizer-path data/raw/bert-vocab/bert-base-uncased-vocab.txt \
    --longest 510 --tasks 16 --workers 8 --executor local

# unigrams
python -m recipes.pretrain_mlm.unigrams --shard "$OUT/data/shard00000" --output "$OUT/unigrams.json" \
    --without-specials

# train:learned
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001:$OUT/data/shard00002:$OUT/data/shard00003:$OUT/data/shard00004:$OUT/data/shard00005:$OUT/data/shard00006:$OUT/data/shard00007:$OUT/data/shard00008:$OUT/data/shard00009:$OUT/data/shard00010:$OUT/data/shard00011:$OUT/data/shard00012:$OUT/data/shard00013:$OUT/data/shard00014:$OUT/data/shard00015" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm \
    --arch posenc_bert_base --sample-break-mode complete --tokens-per-sample 512 --max-positions 512 \
    --mask-whole-words --subwords wordpiece --total-num-update 1000000 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr 0.0001 --lr-scheduler polynomial_decay \
    --warmup-updates 10000 --max-update 1000000 --batch-size 20 --dropout 0.1 --attention-dropout 0.1 \
    --validate-interval-updates 10000 --save-interval-updates 10000 --pos-enc learned --seed 1 \
    --save-dir "$OUT/checkpoints/learned" --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 8 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/learned.train.log"

# evaluate:learned
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/learned/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/learned.json"

# train:shaw
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001:$OUT/data/shard00002:$OUT/data/shard00003:$OUT/data/shard00004:$OUT/data/shard00005:$OUT/data/shard00006:$OUT/data/shard00007:$OUT/data/shard00008:$OUT/data/shard00009:$OUT/data/shard00010:$OUT/data/shard00011:$OUT/data/shard00012:$OUT/data/shard00013:$OUT/data/shard00014:$OUT/data/shard00015" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm \
    --arch posenc_bert_base --sample-break-mode complete --tokens-per-sample 512 --max-positions 512 \
    --mask-whole-words --subwords wordpiece --total-num-update 1000000 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr 0.0001 --lr-scheduler polynomial_decay \
    --warmup-updates 10000 --max-update 1000000 --batch-size 20 --dropout 0.1 --attention-dropout 0.1 \
    --validate-interval-updates 10000 --save-interval-updates 10000 --pos-enc shaw --seed 1 \
    --save-dir "$OUT/checkpoints/shaw" --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 8 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.train.log"

# evaluate:shaw
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/shaw/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/shaw.json"

# train:m1
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001:$OUT/data/shard00002:$OUT/data/shard00003:$OUT/data/shard00004:$OUT/data/shard00005:$OUT/data/shard00006:$OUT/data/shard00007:$OUT/data/shard00008:$OUT/data/shard00009:$OUT/data/shard00010:$OUT/data/shard00011:$OUT/data/shard00012:$OUT/data/shard00013:$OUT/data/shard00014:$OUT/data/shard00015" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm \
    --arch posenc_bert_base --sample-break-mode complete --tokens-per-sample 512 --max-positions 512 \
    --mask-whole-words --subwords wordpiece --total-num-update 1000000 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr 0.0001 --lr-scheduler polynomial_decay \
    --warmup-updates 10000 --max-update 1000000 --batch-size 20 --dropout 0.1 --attention-dropout 0.1 \
    --validate-interval-updates 10000 --save-interval-updates 10000 --pos-enc m1 --seed 1 \
    --save-dir "$OUT/checkpoints/m1" --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 8 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/m1.train.log"

# evaluate:m1
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/m1/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/m1.json"

# train:m2
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001:$OUT/data/shard00002:$OUT/data/shard00003:$OUT/data/shard00004:$OUT/data/shard00005:$OUT/data/shard00006:$OUT/data/shard00007:$OUT/data/shard00008:$OUT/data/shard00009:$OUT/data/shard00010:$OUT/data/shard00011:$OUT/data/shard00012:$OUT/data/shard00013:$OUT/data/shard00014:$OUT/data/shard00015" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm \
    --arch posenc_bert_base --sample-break-mode complete --tokens-per-sample 512 --max-positions 512 \
    --mask-whole-words --subwords wordpiece --total-num-update 1000000 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr 0.0001 --lr-scheduler polynomial_decay \
    --warmup-updates 10000 --max-update 1000000 --batch-size 20 --dropout 0.1 --attention-dropout 0.1 \
    --validate-interval-updates 10000 --save-interval-updates 10000 --pos-enc m2 --seed 1 \
    --save-dir "$OUT/checkpoints/m2" --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 8 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/m2.train.log"

# evaluate:m2
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/m2/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/m2.json"

# train:m3
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001:$OUT/data/shard00002:$OUT/data/shard00003:$OUT/data/shard00004:$OUT/data/shard00005:$OUT/data/shard00006:$OUT/data/shard00007:$OUT/data/shard00008:$OUT/data/shard00009:$OUT/data/shard00010:$OUT/data/shard00011:$OUT/data/shard00012:$OUT/data/shard00013:$OUT/data/shard00014:$OUT/data/shard00015" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm \
    --arch posenc_bert_base --sample-break-mode complete --tokens-per-sample 512 --max-positions 512 \
    --mask-whole-words --subwords wordpiece --total-num-update 1000000 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr 0.0001 --lr-scheduler polynomial_decay \
    --warmup-updates 10000 --max-update 1000000 --batch-size 20 --dropout 0.1 --attention-dropout 0.1 \
    --validate-interval-updates 10000 --save-interval-updates 10000 --pos-enc m3 --seed 1 \
    --save-dir "$OUT/checkpoints/m3" --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 8 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/m3.train.log"

# evaluate:m3
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/m3/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/m3.json"

# train:m4
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001:$OUT/data/shard00002:$OUT/data/shard00003:$OUT/data/shard00004:$OUT/data/shard00005:$OUT/data/shard00006:$OUT/data/shard00007:$OUT/data/shard00008:$OUT/data/shard00009:$OUT/data/shard00010:$OUT/data/shard00011:$OUT/data/shard00012:$OUT/data/shard00013:$OUT/data/shard00014:$OUT/data/shard00015" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm \
    --arch posenc_bert_base --sample-break-mode complete --tokens-per-sample 512 --max-positions 512 \
    --mask-whole-words --subwords wordpiece --total-num-update 1000000 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr 0.0001 --lr-scheduler polynomial_decay \
    --warmup-updates 10000 --max-update 1000000 --batch-size 20 --dropout 0.1 --attention-dropout 0.1 \
    --validate-interval-updates 10000 --save-interval-updates 10000 --pos-enc m4 --seed 1 \
    --save-dir "$OUT/checkpoints/m4" --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 8 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/m4.train.log"

# evaluate:m4
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/m4/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/m4.json"

# compare
python -m recipes.pretrain_mlm.compare --output "$OUT" --pos-enc learned --pos-enc shaw --pos-enc m1 \
    --pos-enc m2 --pos-enc m3 --pos-enc m4 --seed 1 --seeds 1

echo Done: "$OUT/comparison.json" "$OUT/curves.png"
