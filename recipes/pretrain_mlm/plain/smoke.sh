#!/usr/bin/env bash
# This plain script has the commands that recipes/pretrain_mlm/run.sh runs with the preset smoke.
# Usage: recipes/pretrain_mlm/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/pretrain_mlm-smoke-plain}
mkdir -p "$OUT/logs"

# check
python -m recipes.lib.check_models --output "$OUT/checked.json" --pos-enc none --pos-enc learned -- \
    --user-dir fairseq_posenc --task posenc_masked_lm --criterion masked_lm --arch posenc_roberta_tiny \
    --sample-break-mode complete --tokens-per-sample 64 --max-positions 64 --mask-whole-words \
    --subwords sentencepiece --encoder-layers 1 --encoder-embed-dim 32 --encoder-ffn-embed-dim 64 \
    --encoder-attention-heads 2 --optimizer adam --lr 0.005 --batch-size 16 --max-update 40 \
    --validate-interval-updates 20 --save-interval-updates 20 --log-interval 5

# builtin
python -m recipes.pretrain_mlm.builtin --output "$OUT/builtin" --seed 1

# corpus
python data-bin-scripts/prepare_corpus.py --train "$OUT/builtin/train.txt" --valid "$OUT/builtin/valid.txt" \
    --output "$OUT/data" --tokenizer sentencepiece --vocabulary 100 --longest 62 --tasks 2 --workers 1 \
    --executor local

# unigrams
python -m recipes.pretrain_mlm.unigrams --shard "$OUT/data/shard00000" --output "$OUT/unigrams.json" \
    --without-specials

# train:none
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001" --required-batch-size-multiple 1 --num-workers 0 \
    --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_masked_lm --criterion masked_lm --arch posenc_roberta_tiny --sample-break-mode complete \
    --tokens-per-sample 64 --max-positions 64 --mask-whole-words --subwords sentencepiece --encoder-layers 1 \
    --encoder-embed-dim 32 --encoder-ffn-embed-dim 64 --encoder-attention-heads 2 --optimizer adam --lr 0.005 \
    --batch-size 16 --max-update 40 --validate-interval-updates 20 --save-interval-updates 20 --log-interval 5 \
    --pos-enc none --seed 1 --save-dir "$OUT/checkpoints/none" --no-epoch-checkpoints --keep-interval-updates 2 \
    --update-freq 1 --cpu --distributed-world-size 1 2>&1 | tee "$OUT/logs/none.train.log"

# evaluate:none
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/none/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/none.json" --cpu

# train:learned
fairseq-train "$OUT/data/shard00000:$OUT/data/shard00001" --required-batch-size-multiple 1 --num-workers 0 \
    --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_masked_lm --criterion masked_lm --arch posenc_roberta_tiny --sample-break-mode complete \
    --tokens-per-sample 64 --max-positions 64 --mask-whole-words --subwords sentencepiece --encoder-layers 1 \
    --encoder-embed-dim 32 --encoder-ffn-embed-dim 64 --encoder-attention-heads 2 --optimizer adam --lr 0.005 \
    --batch-size 16 --max-update 40 --validate-interval-updates 20 --save-interval-updates 20 --log-interval 5 \
    --pos-enc learned --seed 1 --save-dir "$OUT/checkpoints/learned" --no-epoch-checkpoints \
    --keep-interval-updates 2 --update-freq 1 --cpu --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/learned.train.log"

# evaluate:learned
python -m recipes.pretrain_mlm.evaluate --checkpoint "$OUT/checkpoints/learned/checkpoint_last.pt" \
    --data "$OUT/data/shard00000" --output "$OUT/scores/learned.json" --cpu

# compare
python -m recipes.pretrain_mlm.compare --output "$OUT" --pos-enc none --pos-enc learned --seed 1 --seeds 1

echo Done: "$OUT/comparison.json" "$OUT/curves.png"
