#!/usr/bin/env bash
# This plain script has the commands that recipes/finetune_glue/run.sh runs with the preset paper.
# Usage: recipes/finetune_glue/plain/paper.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/finetune_glue-paper-plain}
: "${MODEL:?set this variable to the value of --checkpoint of run.sh}"
mkdir -p "$OUT/logs"

# check:model
python -m recipes.lib.check_pretrained --checkpoint "$MODEL" --longest 128 --output "$OUT/models/model.json" \
    --segments none

# prepare:MNLI.model
bash data-bin-scripts/prepare_glue.sh --task MNLI --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/MNLI.model" --raw data/raw

# prepare:QQP.model
bash data-bin-scripts/prepare_glue.sh --task QQP --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/QQP.model" --raw data/raw

# prepare:QNLI.model
bash data-bin-scripts/prepare_glue.sh --task QNLI --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/QNLI.model" --raw data/raw

# prepare:SST-2.model
bash data-bin-scripts/prepare_glue.sh --task SST-2 --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/SST-2.model" --raw data/raw

# prepare:CoLA.model
bash data-bin-scripts/prepare_glue.sh --task CoLA --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/CoLA.model" --raw data/raw

# prepare:STS-B.model
bash data-bin-scripts/prepare_glue.sh --task STS-B --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/STS-B.model" --raw data/raw

# prepare:MRPC.model
bash data-bin-scripts/prepare_glue.sh --task MRPC --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/MRPC.model" --raw data/raw

# prepare:RTE.model
bash data-bin-scripts/prepare_glue.sh --task RTE --checkpoint "$MODEL" --longest 128 --separators 1 \
    --bad refuse --output "$OUT/data-bin/RTE.model" --raw data/raw

# baseline:MNLI
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/MNLI.model" \
    --output "$OUT/baselines/MNLI.json" --metrics accuracy

# baseline:QQP
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/QQP.model" \
    --output "$OUT/baselines/QQP.json" --metrics f1,accuracy

# baseline:QNLI
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/QNLI.model" \
    --output "$OUT/baselines/QNLI.json" --metrics accuracy

# baseline:SST-2
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/SST-2.model" \
    --output "$OUT/baselines/SST-2.json" --metrics accuracy

# baseline:CoLA
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/CoLA.model" \
    --output "$OUT/baselines/CoLA.json" --metrics matthews,accuracy

# baseline:STS-B
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/STS-B.model" \
    --output "$OUT/baselines/STS-B.json" --metrics spearman,pearson

# baseline:MRPC
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/MRPC.model" \
    --output "$OUT/baselines/MRPC.json" --metrics f1,accuracy

# baseline:RTE
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/RTE.model" \
    --output "$OUT/baselines/RTE.json" --metrics accuracy

# train:MNLI.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/MNLI.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/MNLI.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 3 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments none --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 2000 \
    --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/MNLI.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/MNLI.model.lr3e-05.e3.s1.train.log"

# evaluate:MNLI.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/MNLI.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/MNLI.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/MNLI.model.lr3e-05.e3.s1.json" --predictions "$OUT/predictions/MNLI.model.lr3e-05.e3.s1"

# train:QQP.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/QQP.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/QQP.model" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_sentence_prediction --criterion posenc_sentence_prediction \
    --num-classes 2 --metrics f1,accuracy --init-token 0 --arch posenc_roberta_pretrained --pretrained "$MODEL" \
    --segments none --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 \
    --lr-scheduler polynomial_decay --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 \
    --validate-interval-updates 2000 --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 \
    --max-epoch 3 --save-dir "$OUT/checkpoints/QQP.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/QQP.model.lr3e-05.e3.s1.train.log"

# evaluate:QQP.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/QQP.model" --metrics f1,accuracy \
    --checkpoint "$OUT/checkpoints/QQP.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/QQP.model.lr3e-05.e3.s1.json" --predictions "$OUT/predictions/QQP.model.lr3e-05.e3.s1"

# train:QNLI.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/QNLI.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/QNLI.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 2 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments none --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 2000 \
    --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/QNLI.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/QNLI.model.lr3e-05.e3.s1.train.log"

# evaluate:QNLI.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/QNLI.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/QNLI.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/QNLI.model.lr3e-05.e3.s1.json" --predictions "$OUT/predictions/QNLI.model.lr3e-05.e3.s1"

# train:SST-2.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/SST-2.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/SST-2.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 2 --metrics accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments none --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 2000 \
    --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/SST-2.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/SST-2.model.lr3e-05.e3.s1.train.log"

# evaluate:SST-2.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/SST-2.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/SST-2.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/SST-2.model.lr3e-05.e3.s1.json" \
    --predictions "$OUT/predictions/SST-2.model.lr3e-05.e3.s1"

# train:CoLA.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/CoLA.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/CoLA.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 2 --metrics matthews,accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments none --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 2000 \
    --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/CoLA.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/CoLA.model.lr3e-05.e3.s1.train.log"

# evaluate:CoLA.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/CoLA.model" \
    --metrics matthews,accuracy --checkpoint "$OUT/checkpoints/CoLA.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/CoLA.model.lr3e-05.e3.s1.json" --predictions "$OUT/predictions/CoLA.model.lr3e-05.e3.s1"

# train:STS-B.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/STS-B.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/STS-B.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 1 --regression-target --metrics spearman,pearson \
    --init-token 0 --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments none --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 2000 \
    --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/STS-B.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/STS-B.model.lr3e-05.e3.s1.train.log"

# evaluate:STS-B.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/STS-B.model" \
    --metrics spearman,pearson --checkpoint "$OUT/checkpoints/STS-B.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/STS-B.model.lr3e-05.e3.s1.json" \
    --predictions "$OUT/predictions/STS-B.model.lr3e-05.e3.s1"

# train:MRPC.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/MRPC.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/MRPC.model" \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --log-interval 20 --user-dir fairseq_posenc --task posenc_sentence_prediction \
    --criterion posenc_sentence_prediction --num-classes 2 --metrics f1,accuracy --init-token 0 \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments none --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --lr-scheduler polynomial_decay \
    --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 2000 \
    --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 --max-epoch 3 \
    --save-dir "$OUT/checkpoints/MRPC.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/MRPC.model.lr3e-05.e3.s1.train.log"

# evaluate:MRPC.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/MRPC.model" --metrics f1,accuracy \
    --checkpoint "$OUT/checkpoints/MRPC.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/MRPC.model.lr3e-05.e3.s1.json" --predictions "$OUT/predictions/MRPC.model.lr3e-05.e3.s1"

# train:RTE.model.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/RTE.model/glue.json" --count splits.train.items \
    --epochs 3 --batch 32 --warmup 0.1 -- fairseq-train "$OUT/data-bin/RTE.model" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_sentence_prediction --criterion posenc_sentence_prediction \
    --num-classes 2 --metrics accuracy --init-token 0 --arch posenc_roberta_pretrained --pretrained "$MODEL" \
    --segments none --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 \
    --lr-scheduler polynomial_decay --clip-norm 1.0 --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 \
    --validate-interval-updates 2000 --save-interval-updates 2000 --lr 3e-05 --seed 1 --batch-size 32 \
    --max-epoch 3 --save-dir "$OUT/checkpoints/RTE.model.lr3e-05.e3.s1" --best-checkpoint-metric score \
    --maximize-best-checkpoint-metric --no-epoch-checkpoints --keep-interval-updates 1 --update-freq 1 \
    --distributed-world-size 1 2>&1 | tee "$OUT/logs/RTE.model.lr3e-05.e3.s1.train.log"

# evaluate:RTE.model.lr3e-05.e3.s1
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/RTE.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/RTE.model.lr3e-05.e3.s1/checkpoint_last.pt" \
    --output "$OUT/scores/RTE.model.lr3e-05.e3.s1.json" --predictions "$OUT/predictions/RTE.model.lr3e-05.e3.s1"

# compare
python -m recipes.lib.finetuning.sentences.compare --output "$OUT" --protocol m1-m4 \
    --variant MNLI model none none --variant QQP model none none --variant QNLI model none none \
    --variant SST-2 model none none --variant CoLA model none none --variant STS-B model none none \
    --variant MRPC model none none --variant RTE model none none --lr 3e-05 --epochs 3 --seed 1

echo Done: "$OUT/comparison.json" "$OUT/submission"
