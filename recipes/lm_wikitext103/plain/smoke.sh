#!/usr/bin/env bash
# This plain script has the commands that recipes/lm_wikitext103/run.sh runs with the preset smoke.
# Usage: recipes/lm_wikitext103/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/lm_wikitext103-smoke-plain}
mkdir -p "$OUT/logs"

# check
python -m recipes.lm_wikitext103.check --output "$OUT/checked.json" --pos-enc xl --pos-enc learned \
    --trained 32 --longest 48 -- --user-dir fairseq_posenc --task posenc_lm_memory --arch posenc_transformer_lm \
    --tokens-per-sample 16 --decoder-layers 1 --decoder-embed-dim 32 --decoder-ffn-embed-dim 64 \
    --decoder-attention-heads 2 --adaptive-one-matrix --adaptive-softmax-cutoff 20,40 --criterion adaptive_loss \
    --ddp-backend legacy_ddp --optimizer adam --lr 0.01 --batch-size 8 --batch-size-valid 4 --max-update 60 \
    --validate-interval-updates 30 --save-interval-updates 30 --log-interval 10

# builtin
python -m recipes.lm_wikitext103.builtin --output "$OUT/builtin" --seed 1

# prepare
python data-bin-scripts/prepare_words.py --text "$OUT/builtin" --output "$OUT/text"

# binarise
fairseq-preprocess --only-source --trainpref "$OUT/text/train.txt" --validpref "$OUT/text/valid.txt" \
    --testpref "$OUT/text/test.txt" --destdir "$OUT/data-bin" --padding-factor 1 --workers 1

# train:xl
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm --tokens-per-sample 16 --decoder-layers 1 --decoder-embed-dim 32 \
    --decoder-ffn-embed-dim 64 --decoder-attention-heads 2 --adaptive-one-matrix --adaptive-softmax-cutoff 20,40 \
    --criterion adaptive_loss --ddp-backend legacy_ddp --optimizer adam --lr 0.01 --batch-size 8 \
    --batch-size-valid 4 --max-update 60 --validate-interval-updates 30 --save-interval-updates 30 \
    --log-interval 10 --pos-enc xl --mem-length 16 --seed 1 --save-dir "$OUT/checkpoints/xl" \
    --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 1 --cpu --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.train.log"

# evaluate:xl.0
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/xl/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 4 --memory 0 --segment 16 --output "$OUT/scores/xl.0.json" --cpu

# evaluate:xl.16
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/xl/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 4 --memory 16 --segment 16 --output "$OUT/scores/xl.16.json" \
    --cpu

# evaluate:xl.40
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/xl/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 4 --memory 40 --segment 8 --same-length --clamp 20 \
    --output "$OUT/scores/xl.40.json" --cpu

# train:learned
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm --tokens-per-sample 16 --decoder-layers 1 --decoder-embed-dim 32 \
    --decoder-ffn-embed-dim 64 --decoder-attention-heads 2 --adaptive-one-matrix --adaptive-softmax-cutoff 20,40 \
    --criterion adaptive_loss --ddp-backend legacy_ddp --optimizer adam --lr 0.01 --batch-size 8 \
    --batch-size-valid 4 --max-update 60 --validate-interval-updates 30 --save-interval-updates 30 \
    --log-interval 10 --pos-enc learned --mem-length 0 --seed 1 --save-dir "$OUT/checkpoints/learned" \
    --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 1 --cpu --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/learned.train.log"

# evaluate:learned.0
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/learned/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 4 --memory 0 --segment 16 --output "$OUT/scores/learned.0.json" \
    --cpu

# compare
python -m recipes.lm_wikitext103.compare --output "$OUT" --text "$OUT/text" --split test --seed 1 --seeds 1 \
    --pos-enc xl --memories 0,16,40 --pos-enc learned --memories 0

echo Done: "$OUT/comparison.json" "$OUT/curves.png"
