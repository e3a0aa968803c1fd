#!/usr/bin/env bash
# This plain script has the commands that recipes/finetune_squad/run.sh runs with the preset smoke.
# Usage: recipes/finetune_squad/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/finetune_squad-smoke-plain}
mkdir -p "$OUT/logs"

# builtin
python -m recipes.lib.finetuning.questions.builtin --output "$OUT/builtin" --seed 1

# pretrain
bash recipes/pretrain_mlm/run.sh --preset smoke --output "$OUT/pretrained" --corpus "$OUT/builtin/text" \
    --vocabulary 120 --length 128 --pos-enc learned,shaw

# check:learned
python -m recipes.lib.finetuning.questions.check \
    --checkpoint "$OUT/pretrained/checkpoints/learned/checkpoint_last.pt" --max-length 96 \
    --output "$OUT/checked/learned.json" -- --user-dir fairseq_posenc --task posenc_squad --criterion squad \
    --arch posenc_roberta_pretrained --pretrained "$OUT/pretrained/checkpoints/learned/checkpoint_last.pt" \
    --lr-scheduler polynomial_decay --optimizer adam --lr 0.003 --clip-norm 1.0 --batch-size 32 --dropout 0.0 \
    --attention-dropout 0.0 --log-interval 5 --total-num-update 1

# check:shaw
python -m recipes.lib.finetuning.questions.check \
    --checkpoint "$OUT/pretrained/checkpoints/shaw/checkpoint_last.pt" --max-length 96 \
    --output "$OUT/checked/shaw.json" -- --user-dir fairseq_posenc --task posenc_squad --criterion squad \
    --arch posenc_roberta_pretrained --pretrained "$OUT/pretrained/checkpoints/shaw/checkpoint_last.pt" \
    --lr-scheduler polynomial_decay --optimizer adam --lr 0.003 --clip-norm 1.0 --batch-size 32 --dropout 0.0 \
    --attention-dropout 0.0 --log-interval 5 --total-num-update 1

# prepare:learned
python data-bin-scripts/prepare_spans.py --checkpoint "$OUT/pretrained/checkpoints/learned/checkpoint_last.pt" \
    --tokenizer-path auto --version 1.1 --train "$OUT/builtin/train.json" --eval "$OUT/builtin/dev.json" \
    --bad refuse --longest 96 --stride 32 --longest-question 40 --separators 2 --limit-eval 60 --limit 600 \
    --output "$OUT/data-bin/learned"

# prepare:shaw
python data-bin-scripts/prepare_spans.py --checkpoint "$OUT/pretrained/checkpoints/shaw/checkpoint_last.pt" \
    --tokenizer-path auto --version 1.1 --train "$OUT/builtin/train.json" --eval "$OUT/builtin/dev.json" \
    --bad refuse --longest 96 --stride 32 --longest-question 40 --separators 2 --limit-eval 60 --limit 600 \
    --output "$OUT/data-bin/shaw"

# baselines
python -m recipes.finetune_squad.baselines --data "$OUT/data-bin/learned" --output "$OUT/baselines.json"

# train:learned
python -m recipes.lib.scheduled --record "$OUT/data-bin/learned/spans.json" --count splits.train.windows \
    --batch 32 --epochs 2 --warmup 0.1 -- fairseq-train "$OUT/data-bin/learned" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_squad --criterion squad --arch posenc_roberta_pretrained \
    --pretrained "$OUT/pretrained/checkpoints/learned/checkpoint_last.pt" --lr-scheduler polynomial_decay \
    --optimizer adam --lr 0.003 --clip-norm 1.0 --batch-size 32 --dropout 0.0 --attention-dropout 0.0 \
    --log-interval 5 --seed 1 --save-dir "$OUT/checkpoints/learned" --no-epoch-checkpoints \
    --keep-interval-updates 1 --update-freq 1 --cpu --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/learned.train.log"

# predict:learned
python -m recipes.lib.finetuning.questions.predict --checkpoint "$OUT/checkpoints/learned/checkpoint_last.pt" \
    --n-best 20 --longest-answer 20 --data "$OUT/data-bin/learned" --output "$OUT/predictions/learned" --cpu

# score:learned
python -m recipes.lib.finetuning.questions.score --data "$OUT/data-bin/learned" \
    --output "$OUT/scores/learned.json" --predictions "$OUT/predictions/learned"

# train:shaw
python -m recipes.lib.scheduled --record "$OUT/data-bin/shaw/spans.json" --count splits.train.windows \
    --batch 32 --epochs 2 --warmup 0.1 -- fairseq-train "$OUT/data-bin/shaw" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_squad --criterion squad --arch posenc_roberta_pretrained \
    --pretrained "$OUT/pretrained/checkpoints/shaw/checkpoint_last.pt" --lr-scheduler polynomial_decay \
    --optimizer adam --lr 0.003 --clip-norm 1.0 --batch-size 32 --dropout 0.0 --attention-dropout 0.0 \
    --log-interval 5 --seed 1 --save-dir "$OUT/checkpoints/shaw" --no-epoch-checkpoints --keep-interval-updates 1 \
    --update-freq 1 --cpu --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.train.log"

# predict:shaw
python -m recipes.lib.finetuning.questions.predict --checkpoint "$OUT/checkpoints/shaw/checkpoint_last.pt" \
    --n-best 20 --longest-answer 20 --data "$OUT/data-bin/shaw" --output "$OUT/predictions/shaw" --cpu

# score:shaw
python -m recipes.lib.finetuning.questions.score --data "$OUT/data-bin/shaw" --output "$OUT/scores/shaw.json" \
    --predictions "$OUT/predictions/shaw"

# compare
python -m recipes.finetune_squad.compare --output "$OUT" --paper none --model learned learned \
    --model shaw shaw --seed 1 --seeds 1

echo Done: "$OUT/comparison.json" "$OUT/curves.png"
