#!/usr/bin/env bash
# This plain script has the commands that recipes/question_generation/run.sh runs with the preset smoke.
# Usage: recipes/question_generation/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/question_generation-smoke-plain}
mkdir -p "$OUT/logs"

# check
python -m recipes.lib.check_models --output "$OUT/checked.json" --pos-enc 'shaw[clip=8,share=none]' \
    --pos-enc t5 \
    --generate '--task posenc_question_generation --max-len-b 50 --beam 5 --lenpen 0.6 --no-repeat-ngram-size 3 --unkpen 10000 --batch-size 32' \
    -- --user-dir fairseq_posenc --task posenc_question_generation --arch posenc_question_generation_tiny \
    --criterion question_generation --max-target-positions 64 --max-source-positions 64 --optimizer adam \
    --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 20 --clip-norm 0.25 --dropout 0.1 --batch-size 32 \
    --max-update 60 --validate-interval 100000 --validate-interval-updates 30 --save-interval-updates 30 \
    --eval-rouge

# builtin
python -m recipes.lib.invented.questions --output "$OUT/builtin" --seed 1

# prepare
python data-bin-scripts/prepare_questions.py --text "$OUT/builtin" --output "$OUT/data-bin" --bad repair \
    --longest 64 --longest-question 50 --context sentence --longest-answer 20 --limit 600 --limit-valid 60 \
    --vocabulary 200 --workers 1

# baselines
python -m recipes.question_generation.baselines --data "$OUT/data-bin" --split valid \
    --output "$OUT/baselines.json"

# train:shaw.clip=8.share=none
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_question_generation --arch posenc_question_generation_tiny --criterion question_generation \
    --max-target-positions 64 --max-source-positions 64 --optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt \
    --warmup-updates 20 --clip-norm 0.25 --dropout 0.1 --batch-size 32 --max-update 60 --validate-interval 100000 \
    --validate-interval-updates 30 --save-interval-updates 30 --eval-rouge --pos-enc shaw \
    --pos-enc-args clip=8,share=none --seed 1 --save-dir "$OUT/checkpoints/shaw.clip=8.share=none" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --cpu --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/shaw.clip=8.share=none.train.log"

# generate:shaw.clip=8.share=none
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 --scoring rouge_l "$OUT/data-bin" --user-dir fairseq_posenc \
    --task posenc_question_generation --path "$OUT/checkpoints/shaw.clip=8.share=none/checkpoint_best.pt" \
    --max-source-positions 64 --max-target-positions 64 --max-len-b 50 --beam 5 --lenpen 0.6 \
    --no-repeat-ngram-size 3 --unkpen 10000 --batch-size 32 --gen-subset valid \
    --results-path "$OUT/generated/shaw.clip=8.share=none" --cpu

# score:shaw.clip=8.share=none
python -m recipes.question_generation.score --data "$OUT/data-bin" --split valid \
    --generated "$OUT/generated/shaw.clip=8.share=none/generate-valid.txt" \
    --questions "$OUT/questions/shaw.clip=8.share=none.txt" --output "$OUT/scores/shaw.clip=8.share=none.json"

# train:t5
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_question_generation --arch posenc_question_generation_tiny --criterion question_generation \
    --max-target-positions 64 --max-source-positions 64 --optimizer adam --lr 0.003 --lr-scheduler inverse_sqrt \
    --warmup-updates 20 --clip-norm 0.25 --dropout 0.1 --batch-size 32 --max-update 60 --validate-interval 100000 \
    --validate-interval-updates 30 --save-interval-updates 30 --eval-rouge --pos-enc t5 --seed 1 \
    --save-dir "$OUT/checkpoints/t5" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/t5.train.log"

# generate:t5
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 --scoring rouge_l "$OUT/data-bin" --user-dir fairseq_posenc \
    --task posenc_question_generation --path "$OUT/checkpoints/t5/checkpoint_best.pt" --max-source-positions 64 \
    --max-target-positions 64 --max-len-b 50 --beam 5 --lenpen 0.6 --no-repeat-ngram-size 3 --unkpen 10000 \
    --batch-size 32 --gen-subset valid --results-path "$OUT/generated/t5" --cpu

# score:t5
python -m recipes.question_generation.score --data "$OUT/data-bin" --split valid \
    --generated "$OUT/generated/t5/generate-valid.txt" --questions "$OUT/questions/t5.txt" \
    --output "$OUT/scores/t5.json"

# compare
python -m recipes.question_generation.compare --output "$OUT" --data "$OUT/data-bin" --split valid --copy on \
    --pos-enc 'shaw[clip=8,share=none]' --pos-enc t5 --seed 1 --seeds 1

echo Done: "$OUT/comparison.json" "$OUT/curves.png" "$OUT/gallery.md"
