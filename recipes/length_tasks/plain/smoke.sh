#!/usr/bin/env bash
# This plain script has the commands that recipes/length_tasks/run.sh runs with the preset smoke.
# Usage: recipes/length_tasks/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/length_tasks-smoke-plain}
mkdir -p "$OUT/logs"

# prepare:copy
python -m recipes.length_tasks.generate --task copy --seed 1 --longest 6 --tested 6 12 --train 2000 --valid 50 \
    --within 50 --beyond 50 --output "$OUT/data/copy"

# prepare:reverse-tags
python -m recipes.length_tasks.generate --task reverse-tags --seed 1 --longest 6 --tested 6 12 --train 2000 \
    --valid 50 --within 50 --beyond 50 --output "$OUT/data/reverse-tags"

# prepare:scan-length
python -m recipes.length_tasks.generate --task scan-length --seed 1 --output "$OUT/data/scan-length"

# train:copy.none
fairseq-train "$OUT/data/copy" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 100 --user-dir fairseq_posenc --task posenc_answers \
    --criterion cross_entropy --pos-enc none --arch posenc_transformer_lm_tiny --batch-size 64 --max-update 60 \
    --optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 10 --clip-norm 1.0 --dropout 0.0 \
    --seed 1 --save-dir "$OUT/checkpoints/copy.none" --no-epoch-checkpoints --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/copy.none.train.log"

# evaluate:copy.none
python -m recipes.length_tasks.evaluate --data "$OUT/data/copy" \
    --checkpoint "$OUT/checkpoints/copy.none/checkpoint_last.pt" --output "$OUT/scores/copy.none.json" --cpu

# train:copy.rope
fairseq-train "$OUT/data/copy" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 100 --user-dir fairseq_posenc --task posenc_answers \
    --criterion cross_entropy --pos-enc rope --arch posenc_transformer_lm_tiny --batch-size 64 --max-update 60 \
    --optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 10 --clip-norm 1.0 --dropout 0.0 \
    --seed 1 --save-dir "$OUT/checkpoints/copy.rope" --no-epoch-checkpoints --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/copy.rope.train.log"

# evaluate:copy.rope
python -m recipes.length_tasks.evaluate --data "$OUT/data/copy" \
    --checkpoint "$OUT/checkpoints/copy.rope/checkpoint_last.pt" --output "$OUT/scores/copy.rope.json" --cpu

# train:reverse-tags.none
fairseq-train "$OUT/data/reverse-tags" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 100 --user-dir fairseq_posenc --task posenc_answers \
    --criterion cross_entropy --pos-enc none --arch posenc_roberta_tiny --encoder-layers 2 --encoder-embed-dim 64 \
    --encoder-ffn-embed-dim 128 --batch-size 64 --max-update 60 --optimizer adam --lr 0.003 \
    --lr-scheduler inverse_sqrt --warmup-updates 10 --clip-norm 1.0 --dropout 0.0 --seed 1 \
    --save-dir "$OUT/checkpoints/reverse-tags.none" --no-epoch-checkpoints --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/reverse-tags.none.train.log"

# evaluate:reverse-tags.none
python -m recipes.length_tasks.evaluate --data "$OUT/data/reverse-tags" \
    --checkpoint "$OUT/checkpoints/reverse-tags.none/checkpoint_last.pt" \
    --output "$OUT/scores/reverse-tags.none.json" --cpu

# train:reverse-tags.rope
fairseq-train "$OUT/data/reverse-tags" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 100 --user-dir fairseq_posenc --task posenc_answers \
    --criterion cross_entropy --pos-enc rope --arch posenc_roberta_tiny --encoder-layers 2 --encoder-embed-dim 64 \
    --encoder-ffn-embed-dim 128 --batch-size 64 --max-update 60 --optimizer adam --lr 0.003 \
    --lr-scheduler inverse_sqrt --warmup-updates 10 --clip-norm 1.0 --dropout 0.0 --seed 1 \
    --save-dir "$OUT/checkpoints/reverse-tags.rope" --no-epoch-checkpoints --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/reverse-tags.rope.train.log"

# evaluate:reverse-tags.rope
python -m recipes.length_tasks.evaluate --data "$OUT/data/reverse-tags" \
    --checkpoint "$OUT/checkpoints/reverse-tags.rope/checkpoint_last.pt" \
    --output "$OUT/scores/reverse-tags.rope.json" --cpu

# train:scan-length.none
fairseq-train "$OUT/data/scan-length" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 100 --user-dir fairseq_posenc --task posenc_answers \
    --criterion cross_entropy --pos-enc none --arch posenc_transformer_tiny --share-all-embeddings --batch-size 64 \
    --max-update 60 --optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 10 --clip-norm 1.0 \
    --dropout 0.0 --seed 1 --save-dir "$OUT/checkpoints/scan-length.none" --no-epoch-checkpoints --update-freq 1 \
    --cpu --distributed-world-size 1 2>&1 | tee "$OUT/logs/scan-length.none.train.log"

# evaluate:scan-length.none
python -m recipes.length_tasks.evaluate --data "$OUT/data/scan-length" \
    --checkpoint "$OUT/checkpoints/scan-length.none/checkpoint_last.pt" \
    --output "$OUT/scores/scan-length.none.json" --cpu

# train:scan-length.rope
fairseq-train "$OUT/data/scan-length" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 100 --user-dir fairseq_posenc --task posenc_answers \
    --criterion cross_entropy --pos-enc rope --arch posenc_transformer_tiny --share-all-embeddings --batch-size 64 \
    --max-update 60 --optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 10 --clip-norm 1.0 \
    --dropout 0.0 --seed 1 --save-dir "$OUT/checkpoints/scan-length.rope" --no-epoch-checkpoints --update-freq 1 \
    --cpu --distributed-world-size 1 2>&1 | tee "$OUT/logs/scan-length.rope.train.log"

# evaluate:scan-length.rope
python -m recipes.length_tasks.evaluate --data "$OUT/data/scan-length" \
    --checkpoint "$OUT/checkpoints/scan-length.rope/checkpoint_last.pt" \
    --output "$OUT/scores/scan-length.rope.json" --cpu

# compare
python -m recipes.length_tasks.compare --output "$OUT" --tasks copy reverse-tags scan-length --pos-enc none \
    --pos-enc rope --seed 1 --seeds 1

echo Done: "$OUT/comparison.json" "$OUT/lengths.png" "$OUT/tasks.png"
