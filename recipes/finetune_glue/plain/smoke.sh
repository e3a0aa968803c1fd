#!/usr/bin/env bash
# This plain script has the commands that recipes/finetune_glue/run.sh runs with the preset smoke.
# Usage: recipes/finetune_glue/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/finetune_glue-smoke-plain}
mkdir -p "$OUT/logs"

# pretrain
bash recipes/pretrain_mlm/run.sh --preset smoke --pos-enc learned --seed 1 --output "$OUT/pretrained"

# builtin
python -m recipes.lib.finetuning.sentences.builtin --output "$OUT/builtin" --seed 1 --task SST-2

# check:learned
python -m recipes.lib.check_pretrained --checkpoint "$OUT/pretrained/checkpoints/learned/checkpoint_last.pt" \
    --longest 64 --output "$OUT/models/learned.json" --segments none

# prepare:SST-2.learned
bash data-bin-scripts/prepare_glue.sh --task SST-2 \
    --checkpoint "$OUT/pretrained/checkpoints/learned/checkpoint_last.pt" --longest 64 --separators 1 --bad refuse \
    --limit 400 --output "$OUT/data-bin/SST-2.learned" --text "$OUT/builtin"

# baseline:SST-2
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/SST-2.learned" \
    --output "$OUT/baselines/SST-2.json" --metrics accuracy

# train:SST-2.learned.lr0.003.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/SST-2.learned/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/SST-2.learned" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 2 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$OUT/pretrained/checkpoints/learned/checkpoint_last.pt" \
    --segments none --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 \
    --lr-scheduler polynomial_decay --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 \
    --validate-interval-updates 2000 --save-interval-updates 2000 --lr 0.003 --seed 1 --batch-size 32 \
    --max-epoch 3 --save-dir "$OUT/checkpoints/SST-2.learned.lr0.003.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 --cpu \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/SST-2.learned.lr0.003.e3.s1.train.log"

# evaluate:SST-2.learned.lr0.003.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/SST-2.learned" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/SST-2.learned.lr0.003.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/SST-2.learned.lr0.003.e3.s1.json" \
    --predictions "$OUT/predictions/SST-2.learned.lr0.003.e3.s1" --cpu

# compare
python -m recipes.lib.finetuning.sentences.compare --output "$OUT" --protocol m1-m4 \
    --variant SST-2 learned none none --lr 0.003 --epochs 3 --seed 1 --differs '--lr 0.003, not 3e-05' \
    --differs '--longest 64, not 128'

echo Done: "$OUT/comparison.json" "$OUT/submission"
