#!/usr/bin/env bash
# The commands that recipes/finetune_xtreme/run.sh runs with the preset paper, as a plain script.
# Usage: recipes/finetune_xtreme/plain/paper.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# The preset trains each model with 5 seeds; this script uses the first one only.
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/finetune_xtreme-paper-plain}
: "${MODEL:?set this variable to the value of --checkpoint of run.sh}"
mkdir -p "$OUT/logs"

# check:model
python -m recipes.lib.check_pretrained --checkpoint "$MODEL" --longest 512 --output "$OUT/models/model.json" \
    --segments input

# prepare:XNLI.model
bash data-bin-scripts/prepare_xtreme.sh --task XNLI --checkpoint "$MODEL" --longest 512 --separators 1 \
    --bad refuse --output "$OUT/data-bin/XNLI.model" --raw data/raw

# baseline:XNLI
python -m recipes.finetune_glue.baselines --data "$OUT/data-bin/XNLI.model" \
    --output "$OUT/baselines/XNLI.json" --metrics accuracy

# train:XNLI.model.input.lr1e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/XNLI.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/XNLI.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 3 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments input --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 \
    --save-interval-updates 3500 --lr 1e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/XNLI.model.input.lr1e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/XNLI.model.input.lr1e-05.e3.s1.train.log"

# evaluate:XNLI.model.input.lr1e-05.e3.s1
python -m recipes.finetune_glue.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/XNLI.model.input.lr1e-05.e3.s1/checkpoint_best.pt" \
    --output "$OUT/scores/XNLI.model.input.lr1e-05.e3.s1.json" \
    --predictions "$OUT/predictions/XNLI.model.input.lr1e-05.e3.s1"

# train:XNLI.model.input.lr2e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/XNLI.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/XNLI.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 3 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments input --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 \
    --save-interval-updates 3500 --lr 2e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/XNLI.model.input.lr2e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/XNLI.model.input.lr2e-05.e3.s1.train.log"

# evaluate:XNLI.model.input.lr2e-05.e3.s1
python -m recipes.finetune_glue.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/XNLI.model.input.lr2e-05.e3.s1/checkpoint_best.pt" \
    --output "$OUT/scores/XNLI.model.input.lr2e-05.e3.s1.json" \
    --predictions "$OUT/predictions/XNLI.model.input.lr2e-05.e3.s1"

# train:XNLI.model.input.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/XNLI.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/XNLI.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 3 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments input --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 \
    --save-interval-updates 3500 --lr 3e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/XNLI.model.input.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/XNLI.model.input.lr3e-05.e3.s1.train.log"

# evaluate:XNLI.model.input.lr3e-05.e3.s1
python -m recipes.finetune_glue.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/XNLI.model.input.lr3e-05.e3.s1/checkpoint_best.pt" \
    --output "$OUT/scores/XNLI.model.input.lr3e-05.e3.s1.json" \
    --predictions "$OUT/predictions/XNLI.model.input.lr3e-05.e3.s1"

# train:XNLI.model.input.lr4e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/XNLI.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/XNLI.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 3 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments input --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 \
    --save-interval-updates 3500 --lr 4e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/XNLI.model.input.lr4e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/XNLI.model.input.lr4e-05.e3.s1.train.log"

# evaluate:XNLI.model.input.lr4e-05.e3.s1
python -m recipes.finetune_glue.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/XNLI.model.input.lr4e-05.e3.s1/checkpoint_best.pt" \
    --output "$OUT/scores/XNLI.model.input.lr4e-05.e3.s1.json" \
    --predictions "$OUT/predictions/XNLI.model.input.lr4e-05.e3.s1"

# compare
python -m recipes.finetune_glue.compare --output "$OUT" --protocol diet-xtreme \
    --variant XNLI model input input --lr 1e-05 --lr 2e-05 --lr 3e-05 --lr 4e-05 --epochs 3 --seed 1 \
    --differs '1 seed, not 5'

echo Done: "$OUT/comparison.json" "$OUT/submission"
