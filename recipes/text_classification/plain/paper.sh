#!/usr/bin/env bash
# This plain script has the commands that recipes/text_classification/run.sh runs with the preset paper.
# Usage: recipes/text_classification/plain/paper.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# The preset trains each model with 10 seeds; this script uses the first one only.
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/text_classification-paper-plain}
mkdir -p "$OUT/logs"

# prepare
bash data-bin-scripts/prepare_text_classification.sh --task sst2 --tokenizer nltk --more-than 3 --longest 512 \
    --bad refuse --seed 1 --glove published --output "$OUT/data-bin" --raw data/raw

# baselines
python -m recipes.text_classification.baselines --data "$OUT/data-bin" --metrics accuracy --splits test \
    --output "$OUT/baselines.json"

# train:diet-rel.s1
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 1 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s1" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s1.train.log"

# evaluate:diet-rel.s1
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s1/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s1.json" \
    --predictions "$OUT/predictions/diet-rel.s1"

# train:shaw.clip=4.share=none.s1
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 1 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s1" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s1.train.log"

# evaluate:shaw.clip=4.share=none.s1
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s1/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s1.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s1"

# train:lfhc.clip=4.s1
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 1 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s1" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s1.train.log"

# evaluate:lfhc.clip=4.s1
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s1/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s1.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s1"

# train:xl.s1
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 1 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s1" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s1.train.log"

# evaluate:xl.s1
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s1/checkpoint_best.pt" --output "$OUT/scores/xl.s1.json" \
    --predictions "$OUT/predictions/xl.s1"

# train:gcdf.s1
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 1 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s1" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s1.train.log"

# evaluate:gcdf.s1
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s1/checkpoint_best.pt" --output "$OUT/scores/gcdf.s1.json" \
    --predictions "$OUT/predictions/gcdf.s1"

# compare
python -m recipes.text_classification.compare --output "$OUT" --task SST-2 --seeds 1 --pos-enc diet-rel \
    --pos-enc 'shaw[clip=4,share=none]' --pos-enc 'lfhc[clip=4]' --pos-enc xl --pos-enc gcdf

echo Done: "$OUT/comparison.json" "$OUT/lengths.png"
