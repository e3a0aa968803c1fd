#!/usr/bin/env bash
# This plain script has the commands that recipes/text_classification/run.sh runs with the preset smoke.
# Usage: recipes/text_classification/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/text_classification-smoke-plain}
mkdir -p "$OUT/logs"

# builtin
python -m recipes.text_classification.builtin --output "$OUT/builtin" --seed 1

# prepare
bash data-bin-scripts/prepare_text_classification.sh --tokenizer nltk --more-than 0 --longest 512 --bad refuse \
    --seed 1 --output "$OUT/data-bin" --data "$OUT/builtin"

# baselines
python -m recipes.text_classification.baselines --data "$OUT/data-bin" --metrics accuracy --splits test \
    --output "$OUT/baselines.json"

# train:none.s1
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier_tiny --pos-enc none --pooling max --max-positions 512 --batch-size 32 --seed 1 \
    --max-update 60 --total-num-update 60 --warmup-updates 10 --validate-interval-updates 30 \
    --save-interval-updates 30 --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam \
    --adam-betas '(0.9, 0.999)' --lr 0.003 --lr-scheduler polynomial_decay --dropout 0.1 \
    --save-dir "$OUT/checkpoints/none.s1" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/none.s1.train.log"

# evaluate:none.s1
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/none.s1/checkpoint_best.pt" --output "$OUT/scores/none.s1.json" \
    --predictions "$OUT/predictions/none.s1" --cpu

# train:none.s2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier_tiny --pos-enc none --pooling max --max-positions 512 --batch-size 32 --seed 2 \
    --max-update 60 --total-num-update 60 --warmup-updates 10 --validate-interval-updates 30 \
    --save-interval-updates 30 --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam \
    --adam-betas '(0.9, 0.999)' --lr 0.003 --lr-scheduler polynomial_decay --dropout 0.1 \
    --save-dir "$OUT/checkpoints/none.s2" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/none.s2.train.log"

# evaluate:none.s2
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/none.s2/checkpoint_best.pt" --output "$OUT/scores/none.s2.json" \
    --predictions "$OUT/predictions/none.s2" --cpu

# train:shaw.s1
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier_tiny --pos-enc shaw --pooling max --max-positions 512 --batch-size 32 --seed 1 \
    --max-update 60 --total-num-update 60 --warmup-updates 10 --validate-interval-updates 30 \
    --save-interval-updates 30 --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam \
    --adam-betas '(0.9, 0.999)' --lr 0.003 --lr-scheduler polynomial_decay --dropout 0.1 \
    --save-dir "$OUT/checkpoints/shaw.s1" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.s1.train.log"

# evaluate:shaw.s1
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.s1/checkpoint_best.pt" --output "$OUT/scores/shaw.s1.json" \
    --predictions "$OUT/predictions/shaw.s1" --cpu

# train:shaw.s2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier_tiny --pos-enc shaw --pooling max --max-positions 512 --batch-size 32 --seed 2 \
    --max-update 60 --total-num-update 60 --warmup-updates 10 --validate-interval-updates 30 \
    --save-interval-updates 30 --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam \
    --adam-betas '(0.9, 0.999)' --lr 0.003 --lr-scheduler polynomial_decay --dropout 0.1 \
    --save-dir "$OUT/checkpoints/shaw.s2" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.s2.train.log"

# evaluate:shaw.s2
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.s2/checkpoint_best.pt" --output "$OUT/scores/shaw.s2.json" \
    --predictions "$OUT/predictions/shaw.s2" --cpu

# compare
python -m recipes.text_classification.compare --output "$OUT" --seeds 1,2 --pos-enc none --pos-enc shaw

echo Done: "$OUT/comparison.json" "$OUT/lengths.png"
