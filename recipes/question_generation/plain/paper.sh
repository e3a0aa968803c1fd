#!/usr/bin/env bash
# This plain script has the commands that recipes/question_generation/run.sh runs with the preset paper.
# Usage: recipes/question_generation/plain/paper.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# The preset trains each model with 10 seeds; this script uses the first one only.
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/question_generation-paper-plain}
: "${ENCODER:?set this variable to the value of --encoder of run.sh}"
mkdir -p "$OUT/logs"

# check
python -m recipes.lib.check_models --output "$OUT/checked.json" --pos-enc 'diet-rel[clip=50]' \
    --pos-enc 'shaw[clip=8,share=none]' --pos-enc 'lfhc[clip=2]' --pos-enc xl --pos-enc gcdf \
    --generate '--task posenc_question_generation --max-len-b 50 --beam 5 --lenpen 0.6 --no-repeat-ngram-size 3 --unkpen 10000 --batch-size 32' \
    -- --user-dir fairseq_posenc --task posenc_question_generation --arch posenc_question_generation \
    --criterion question_generation --max-target-positions 64 --max-source-positions 512 --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay \
    --end-learning-rate 1e-09 --warmup-updates 4000 --total-num-update 30000 --max-update 30000 --clip-norm 0.25 \
    --dropout 0.1 --batch-size 32 --validate-interval 100000 --validate-interval-updates 2000 \
    --save-interval-updates 2000 --eval-rouge --best-checkpoint-metric rouge_l --maximize-best-checkpoint-metric

# fetch
python data-bin-scripts/fetch.py squad/train-v1.1.json squad/dev-v1.1.json --output data/raw

# prepare
python data-bin-scripts/prepare_questions.py --train data/raw/squad/train-v1.1.json \
    --valid data/raw/squad/dev-v1.1.json --output "$OUT/data-bin" --bad repair --longest 512 --longest-question 50 \
    --context paragraph --longest-answer 100 --tokenizer-path "$ENCODER" --workers 8

# baselines
python -m recipes.question_generation.baselines --data "$OUT/data-bin" --split valid \
    --output "$OUT/baselines.json"

# train:diet-rel.clip=50
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_question_generation --arch posenc_question_generation --criterion question_generation \
    --max-target-positions 64 --encoder-from "$ENCODER" --optimizer adam --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 \
    --warmup-updates 4000 --total-num-update 30000 --max-update 30000 --clip-norm 0.25 --dropout 0.1 \
    --batch-size 32 --validate-interval 100000 --validate-interval-updates 2000 --save-interval-updates 2000 \
    --eval-rouge --best-checkpoint-metric rouge_l --maximize-best-checkpoint-metric --pos-enc diet-rel \
    --pos-enc-args clip=50 --seed 1 --save-dir "$OUT/checkpoints/diet-rel.clip=50" --no-epoch-checkpoints \
    --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.clip=50.train.log"

# generate:diet-rel.clip=50
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 --scoring rouge_l "$OUT/data-bin" --user-dir fairseq_posenc \
    --task posenc_question_generation --path "$OUT/checkpoints/diet-rel.clip=50/checkpoint_best.pt" \
    --max-source-positions 512 --max-target-positions 64 --max-len-b 50 --beam 5 --lenpen 0.6 \
    --no-repeat-ngram-size 3 --unkpen 10000 --batch-size 32 --gen-subset valid \
    --results-path "$OUT/generated/diet-rel.clip=50"

# score:diet-rel.clip=50
python -m recipes.question_generation.score --data "$OUT/data-bin" --split valid \
    --generated "$OUT/generated/diet-rel.clip=50/generate-valid.txt" \
    --questions "$OUT/questions/diet-rel.clip=50.txt" --output "$OUT/scores/diet-rel.clip=50.json"

# train:shaw.clip=8.share=none
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_question_generation --arch posenc_question_generation --criterion question_generation \
    --max-target-positions 64 --encoder-from "$ENCODER" --optimizer adam --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 \
    --warmup-updates 4000 --total-num-update 30000 --max-update 30000 --clip-norm 0.25 --dropout 0.1 \
    --batch-size 32 --validate-interval 100000 --validate-interval-updates 2000 --save-interval-updates 2000 \
    --eval-rouge --best-checkpoint-metric rouge_l --maximize-best-checkpoint-metric --pos-enc shaw \
    --pos-enc-args clip=8,share=none --seed 1 --save-dir "$OUT/checkpoints/shaw.clip=8.share=none" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/shaw.clip=8.share=none.train.log"

# generate:shaw.clip=8.share=none
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 --scoring rouge_l "$OUT/data-bin" --user-dir fairseq_posenc \
    --task posenc_question_generation --path "$OUT/checkpoints/shaw.clip=8.share=none/checkpoint_best.pt" \
    --max-source-positions 512 --max-target-positions 64 --max-len-b 50 --beam 5 --lenpen 0.6 \
    --no-repeat-ngram-size 3 --unkpen 10000 --batch-size 32 --gen-subset valid \
    --results-path "$OUT/generated/shaw.clip=8.share=none"

# score:shaw.clip=8.share=none
python -m recipes.question_generation.score --data "$OUT/data-bin" --split valid \
    --generated "$OUT/generated/shaw.clip=8.share=none/generate-valid.txt" \
    --questions "$OUT/questions/shaw.clip=8.share=none.txt" --output "$OUT/scores/shaw.clip=8.share=none.json"

# train:lfhc.clip=2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_question_generation --arch posenc_question_generation --criterion question_generation \
    --max-target-positions 64 --encoder-from "$ENCODER" --optimizer adam --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 \
    --warmup-updates 4000 --total-num-update 30000 --max-update 30000 --clip-norm 0.25 --dropout 0.1 \
    --batch-size 32 --validate-interval 100000 --validate-interval-updates 2000 --save-interval-updates 2000 \
    --eval-rouge --best-checkpoint-metric rouge_l --maximize-best-checkpoint-metric --pos-enc lfhc \
    --pos-enc-args clip=2 --seed 1 --save-dir "$OUT/checkpoints/lfhc.clip=2" --no-epoch-checkpoints \
    --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=2.train.log"

# generate:lfhc.clip=2
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 --scoring rouge_l "$OUT/data-bin" --user-dir fairseq_posenc \
    --task posenc_question_generation --path "$OUT/checkpoints/lfhc.clip=2/checkpoint_best.pt" \
    --max-source-positions 512 --max-target-positions 64 --max-len-b 50 --beam 5 --lenpen 0.6 \
    --no-repeat-ngram-size 3 --unkpen 10000 --batch-size 32 --gen-subset valid \
    --results-path "$OUT/generated/lfhc.clip=2"

# score:lfhc.clip=2
python -m recipes.question_generation.score --data "$OUT/data-bin" --split valid \
    --generated "$OUT/generated/lfhc.clip=2/generate-valid.txt" --questions "$OUT/questions/lfhc.clip=2.txt" \
    --output "$OUT/scores/lfhc.clip=2.json"

# train:xl
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_question_generation --arch posenc_question_generation --criterion question_generation \
    --max-target-positions 64 --encoder-from "$ENCODER" --optimizer adam --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 \
    --warmup-updates 4000 --total-num-update 30000 --max-update 30000 --clip-norm 0.25 --dropout 0.1 \
    --batch-size 32 --validate-interval 100000 --validate-interval-updates 2000 --save-interval-updates 2000 \
    --eval-rouge --best-checkpoint-metric rouge_l --maximize-best-checkpoint-metric --pos-enc xl --seed 1 \
    --save-dir "$OUT/checkpoints/xl" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/xl.train.log"

# generate:xl
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 --scoring rouge_l "$OUT/data-bin" --user-dir fairseq_posenc \
    --task posenc_question_generation --path "$OUT/checkpoints/xl/checkpoint_best.pt" --max-source-positions 512 \
    --max-target-positions 64 --max-len-b 50 --beam 5 --lenpen 0.6 --no-repeat-ngram-size 3 --unkpen 10000 \
    --batch-size 32 --gen-subset valid --results-path "$OUT/generated/xl"

# score:xl
python -m recipes.question_generation.score --data "$OUT/data-bin" --split valid \
    --generated "$OUT/generated/xl/generate-valid.txt" --questions "$OUT/questions/xl.txt" \
    --output "$OUT/scores/xl.json"

# train:gcdf
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc \
    --task posenc_question_generation --arch posenc_question_generation --criterion question_generation \
    --max-target-positions 64 --encoder-from "$ENCODER" --optimizer adam --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 \
    --warmup-updates 4000 --total-num-update 30000 --max-update 30000 --clip-norm 0.25 --dropout 0.1 \
    --batch-size 32 --validate-interval 100000 --validate-interval-updates 2000 --save-interval-updates 2000 \
    --eval-rouge --best-checkpoint-metric rouge_l --maximize-best-checkpoint-metric --pos-enc gcdf --seed 1 \
    --save-dir "$OUT/checkpoints/gcdf" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/gcdf.train.log"

# generate:gcdf
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 --scoring rouge_l "$OUT/data-bin" --user-dir fairseq_posenc \
    --task posenc_question_generation --path "$OUT/checkpoints/gcdf/checkpoint_best.pt" --max-source-positions 512 \
    --max-target-positions 64 --max-len-b 50 --beam 5 --lenpen 0.6 --no-repeat-ngram-size 3 --unkpen 10000 \
    --batch-size 32 --gen-subset valid --results-path "$OUT/generated/gcdf"

# score:gcdf
python -m recipes.question_generation.score --data "$OUT/data-bin" --split valid \
    --generated "$OUT/generated/gcdf/generate-valid.txt" --questions "$OUT/questions/gcdf.txt" \
    --output "$OUT/scores/gcdf.json"

# compare
python -m recipes.question_generation.compare --output "$OUT" --data "$OUT/data-bin" --split valid --copy on \
    --pos-enc 'diet-rel[clip=50]' --pos-enc 'shaw[clip=8,share=none]' --pos-enc 'lfhc[clip=2]' --pos-enc xl \
    --pos-enc gcdf --seed 1 --seeds 1

echo Done: "$OUT/comparison.json" "$OUT/curves.png" "$OUT/gallery.md"
