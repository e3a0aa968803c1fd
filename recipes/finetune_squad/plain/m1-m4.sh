#!/usr/bin/env bash
# This plain script has the commands that recipes/finetune_squad/run.sh runs with the preset m1-m4.
# Usage: recipes/finetune_squad/plain/m1-m4.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/finetune_squad-m1-m4-plain}
: "${MODEL:?set this variable to the value of --checkpoint of run.sh}"
mkdir -p "$OUT/logs"

# fetch
python data-bin-scripts/fetch.py squad/train-v1.1.json squad/dev-v1.1.json --output data/raw

# check:model
python -m recipes.lib.finetuning.questions.check --checkpoint "$MODEL" --max-length 512 \
    --output "$OUT/checked/model.json" -- --user-dir fairseq_posenc --task posenc_squad --criterion squad \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --lr-scheduler polynomial_decay --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.0 --clip-norm 1.0 --lr 3e-05 --batch-size 6 \
    --dropout 0.1 --attention-dropout 0.1 --validate-interval-updates 2000 --save-interval-updates 2000 \
    --total-num-update 1

# prepare:model
python data-bin-scripts/prepare_spans.py --checkpoint "$MODEL" --tokenizer-path auto --version 1.1 \
    --train data/raw/squad/train-v1.1.json --eval data/raw/squad/dev-v1.1.json --bad refuse --longest 512 \
    --stride 128 --longest-question 64 --separators 1 --output "$OUT/data-bin/model"

# baselines
python -m recipes.finetune_squad.baselines --data "$OUT/data-bin/model" --output "$OUT/baselines.json"

# train:model
python -m recipes.lib.scheduled --record "$OUT/data-bin/model/spans.json" --count splits.train.windows \
    --batch 48 --epochs 2 --warmup 0.0 -- fairseq-train "$OUT/data-bin/model" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_squad --criterion squad --arch posenc_roberta_pretrained \
    --pretrained "$MODEL" --lr-scheduler polynomial_decay --optimizer adam --adam-betas '(0.9, 0.999)' \
    --adam-eps 1e-08 --weight-decay 0.0 --clip-norm 1.0 --lr 3e-05 --batch-size 6 --dropout 0.1 \
    --attention-dropout 0.1 --validate-interval-updates 2000 --save-interval-updates 2000 --seed 1 \
    --save-dir "$OUT/checkpoints/model" --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 8 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/model.train.log"

# predict:model
python -m recipes.lib.finetuning.questions.predict --checkpoint "$OUT/checkpoints/model/checkpoint_last.pt" \
    --n-best 20 --longest-answer 30 --data "$OUT/data-bin/model" --output "$OUT/predictions/model"

# score:model
python -m recipes.lib.finetuning.questions.score --data "$OUT/data-bin/model" \
    --output "$OUT/scores/model.json" --predictions "$OUT/predictions/model"

# compare
python -m recipes.finetune_squad.compare --output "$OUT" --paper m1-m4 --model model model --seed 1 --seeds 1

echo Done: "$OUT/comparison.json" "$OUT/curves.png"
