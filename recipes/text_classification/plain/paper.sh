#!/usr/bin/env bash
# The commands that recipes/text_classification/run.sh runs with the preset paper, as a plain script.
# Usage: recipes/text_classification/plain/paper.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
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

# train:diet-rel.s2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 2 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s2" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s2.train.log"

# evaluate:diet-rel.s2
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s2/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s2.json" \
    --predictions "$OUT/predictions/diet-rel.s2"

# train:diet-rel.s3
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 3 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s3" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s3.train.log"

# evaluate:diet-rel.s3
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s3/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s3.json" \
    --predictions "$OUT/predictions/diet-rel.s3"

# train:diet-rel.s4
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 4 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s4" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s4.train.log"

# evaluate:diet-rel.s4
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s4/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s4.json" \
    --predictions "$OUT/predictions/diet-rel.s4"

# train:diet-rel.s5
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 5 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s5" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s5.train.log"

# evaluate:diet-rel.s5
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s5/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s5.json" \
    --predictions "$OUT/predictions/diet-rel.s5"

# train:diet-rel.s6
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 6 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s6" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s6.train.log"

# evaluate:diet-rel.s6
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s6/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s6.json" \
    --predictions "$OUT/predictions/diet-rel.s6"

# train:diet-rel.s7
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 7 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s7" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s7.train.log"

# evaluate:diet-rel.s7
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s7/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s7.json" \
    --predictions "$OUT/predictions/diet-rel.s7"

# train:diet-rel.s8
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 8 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s8" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s8.train.log"

# evaluate:diet-rel.s8
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s8/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s8.json" \
    --predictions "$OUT/predictions/diet-rel.s8"

# train:diet-rel.s9
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 9 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s9" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s9.train.log"

# evaluate:diet-rel.s9
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s9/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s9.json" \
    --predictions "$OUT/predictions/diet-rel.s9"

# train:diet-rel.s10
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc diet-rel --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 10 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/diet-rel.s10" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.s10.train.log"

# evaluate:diet-rel.s10
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/diet-rel.s10/checkpoint_best.pt" --output "$OUT/scores/diet-rel.s10.json" \
    --predictions "$OUT/predictions/diet-rel.s10"

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

# train:shaw.clip=4.share=none.s2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 2 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s2" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s2.train.log"

# evaluate:shaw.clip=4.share=none.s2
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s2/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s2.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s2"

# train:shaw.clip=4.share=none.s3
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 3 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s3" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s3.train.log"

# evaluate:shaw.clip=4.share=none.s3
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s3/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s3.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s3"

# train:shaw.clip=4.share=none.s4
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 4 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s4" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s4.train.log"

# evaluate:shaw.clip=4.share=none.s4
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s4/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s4.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s4"

# train:shaw.clip=4.share=none.s5
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 5 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s5" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s5.train.log"

# evaluate:shaw.clip=4.share=none.s5
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s5/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s5.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s5"

# train:shaw.clip=4.share=none.s6
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 6 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s6" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s6.train.log"

# evaluate:shaw.clip=4.share=none.s6
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s6/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s6.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s6"

# train:shaw.clip=4.share=none.s7
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 7 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s7" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s7.train.log"

# evaluate:shaw.clip=4.share=none.s7
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s7/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s7.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s7"

# train:shaw.clip=4.share=none.s8
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 8 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s8" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s8.train.log"

# evaluate:shaw.clip=4.share=none.s8
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s8/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s8.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s8"

# train:shaw.clip=4.share=none.s9
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 9 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s9" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s9.train.log"

# evaluate:shaw.clip=4.share=none.s9
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s9/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s9.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s9"

# train:shaw.clip=4.share=none.s10
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc shaw --pos-enc-args clip=4,share=none --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 10 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu \
    --save-dir "$OUT/checkpoints/shaw.clip=4.share=none.s10" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=4.share=none.s10.train.log"

# evaluate:shaw.clip=4.share=none.s10
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/shaw.clip=4.share=none.s10/checkpoint_best.pt" \
    --output "$OUT/scores/shaw.clip=4.share=none.s10.json" \
    --predictions "$OUT/predictions/shaw.clip=4.share=none.s10"

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

# train:lfhc.clip=4.s2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 2 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s2" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s2.train.log"

# evaluate:lfhc.clip=4.s2
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s2/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s2.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s2"

# train:lfhc.clip=4.s3
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 3 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s3" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s3.train.log"

# evaluate:lfhc.clip=4.s3
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s3/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s3.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s3"

# train:lfhc.clip=4.s4
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 4 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s4" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s4.train.log"

# evaluate:lfhc.clip=4.s4
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s4/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s4.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s4"

# train:lfhc.clip=4.s5
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 5 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s5" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s5.train.log"

# evaluate:lfhc.clip=4.s5
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s5/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s5.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s5"

# train:lfhc.clip=4.s6
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 6 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s6" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s6.train.log"

# evaluate:lfhc.clip=4.s6
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s6/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s6.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s6"

# train:lfhc.clip=4.s7
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 7 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s7" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s7.train.log"

# evaluate:lfhc.clip=4.s7
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s7/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s7.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s7"

# train:lfhc.clip=4.s8
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 8 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s8" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s8.train.log"

# evaluate:lfhc.clip=4.s8
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s8/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s8.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s8"

# train:lfhc.clip=4.s9
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 9 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s9" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s9.train.log"

# evaluate:lfhc.clip=4.s9
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s9/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s9.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s9"

# train:lfhc.clip=4.s10
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc lfhc --pos-enc-args clip=4 --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 10 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/lfhc.clip=4.s10" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=4.s10.train.log"

# evaluate:lfhc.clip=4.s10
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/lfhc.clip=4.s10/checkpoint_best.pt" --output "$OUT/scores/lfhc.clip=4.s10.json" \
    --predictions "$OUT/predictions/lfhc.clip=4.s10"

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

# train:xl.s2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 2 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s2" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s2.train.log"

# evaluate:xl.s2
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s2/checkpoint_best.pt" --output "$OUT/scores/xl.s2.json" \
    --predictions "$OUT/predictions/xl.s2"

# train:xl.s3
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 3 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s3" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s3.train.log"

# evaluate:xl.s3
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s3/checkpoint_best.pt" --output "$OUT/scores/xl.s3.json" \
    --predictions "$OUT/predictions/xl.s3"

# train:xl.s4
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 4 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s4" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s4.train.log"

# evaluate:xl.s4
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s4/checkpoint_best.pt" --output "$OUT/scores/xl.s4.json" \
    --predictions "$OUT/predictions/xl.s4"

# train:xl.s5
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 5 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s5" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s5.train.log"

# evaluate:xl.s5
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s5/checkpoint_best.pt" --output "$OUT/scores/xl.s5.json" \
    --predictions "$OUT/predictions/xl.s5"

# train:xl.s6
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 6 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s6" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s6.train.log"

# evaluate:xl.s6
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s6/checkpoint_best.pt" --output "$OUT/scores/xl.s6.json" \
    --predictions "$OUT/predictions/xl.s6"

# train:xl.s7
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 7 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s7" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s7.train.log"

# evaluate:xl.s7
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s7/checkpoint_best.pt" --output "$OUT/scores/xl.s7.json" \
    --predictions "$OUT/predictions/xl.s7"

# train:xl.s8
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 8 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s8" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s8.train.log"

# evaluate:xl.s8
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s8/checkpoint_best.pt" --output "$OUT/scores/xl.s8.json" \
    --predictions "$OUT/predictions/xl.s8"

# train:xl.s9
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 9 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s9" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s9.train.log"

# evaluate:xl.s9
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s9/checkpoint_best.pt" --output "$OUT/scores/xl.s9.json" \
    --predictions "$OUT/predictions/xl.s9"

# train:xl.s10
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc xl --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 10 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/xl.s10" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.s10.train.log"

# evaluate:xl.s10
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/xl.s10/checkpoint_best.pt" --output "$OUT/scores/xl.s10.json" \
    --predictions "$OUT/predictions/xl.s10"

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

# train:gcdf.s2
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 2 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s2" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s2.train.log"

# evaluate:gcdf.s2
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s2/checkpoint_best.pt" --output "$OUT/scores/gcdf.s2.json" \
    --predictions "$OUT/predictions/gcdf.s2"

# train:gcdf.s3
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 3 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s3" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s3.train.log"

# evaluate:gcdf.s3
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s3/checkpoint_best.pt" --output "$OUT/scores/gcdf.s3.json" \
    --predictions "$OUT/predictions/gcdf.s3"

# train:gcdf.s4
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 4 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s4" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s4.train.log"

# evaluate:gcdf.s4
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s4/checkpoint_best.pt" --output "$OUT/scores/gcdf.s4.json" \
    --predictions "$OUT/predictions/gcdf.s4"

# train:gcdf.s5
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 5 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s5" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s5.train.log"

# evaluate:gcdf.s5
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s5/checkpoint_best.pt" --output "$OUT/scores/gcdf.s5.json" \
    --predictions "$OUT/predictions/gcdf.s5"

# train:gcdf.s6
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 6 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s6" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s6.train.log"

# evaluate:gcdf.s6
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s6/checkpoint_best.pt" --output "$OUT/scores/gcdf.s6.json" \
    --predictions "$OUT/predictions/gcdf.s6"

# train:gcdf.s7
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 7 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s7" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s7.train.log"

# evaluate:gcdf.s7
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s7/checkpoint_best.pt" --output "$OUT/scores/gcdf.s7.json" \
    --predictions "$OUT/predictions/gcdf.s7"

# train:gcdf.s8
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 8 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s8" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s8.train.log"

# evaluate:gcdf.s8
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s8/checkpoint_best.pt" --output "$OUT/scores/gcdf.s8.json" \
    --predictions "$OUT/predictions/gcdf.s8"

# train:gcdf.s9
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 9 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s9" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s9.train.log"

# evaluate:gcdf.s9
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s9/checkpoint_best.pt" --output "$OUT/scores/gcdf.s9.json" \
    --predictions "$OUT/predictions/gcdf.s9"

# train:gcdf.s10
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 50 --user-dir fairseq_posenc \
    --task posenc_sentence_prediction --criterion posenc_sentence_prediction --metrics accuracy \
    --arch posenc_classifier --pos-enc gcdf --pooling max --max-positions 512 \
    --word-vectors "$OUT/data-bin/word_vectors.safetensors" --batch-size 64 --seed 10 --max-update 20000 \
    --total-num-update 20000 --warmup-updates 1000 --validate-interval-updates 500 --save-interval-updates 500 \
    --best-checkpoint-metric score --maximize-best-checkpoint-metric --optimizer adam --adam-betas '(0.9, 0.999)' \
    --weight-decay 0.01 --lr 2e-05 --lr-scheduler polynomial_decay --end-learning-rate 1e-09 --clip-norm 0.25 \
    --dropout 0.15 --attention-dropout 0.15 --activation-fn gelu --save-dir "$OUT/checkpoints/gcdf.s10" \
    --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.s10.train.log"

# evaluate:gcdf.s10
python -m recipes.text_classification.evaluate --data "$OUT/data-bin" --metrics accuracy --splits test \
    --checkpoint "$OUT/checkpoints/gcdf.s10/checkpoint_best.pt" --output "$OUT/scores/gcdf.s10.json" \
    --predictions "$OUT/predictions/gcdf.s10"

# compare
python -m recipes.text_classification.compare --output "$OUT" --task SST-2 --seeds 1,2,3,4,5,6,7,8,9,10 \
    --pos-enc diet-rel --pos-enc 'shaw[clip=4,share=none]' --pos-enc 'lfhc[clip=4]' --pos-enc xl --pos-enc gcdf

echo Done: "$OUT/comparison.json" "$OUT/lengths.png"
