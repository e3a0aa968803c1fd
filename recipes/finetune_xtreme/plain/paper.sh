#!/usr/bin/env bash
# This plain script has the commands that recipes/finetune_xtreme/run.sh runs with the preset paper.
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

# check:XNLI.model
python -m recipes.lib.check_pretrained --checkpoint "$MODEL" --longest 512 --output "$OUT/models/model.json" \
    --segments input

# prepare:XNLI.model
bash data-bin-scripts/prepare_xtreme.sh --task XNLI --checkpoint "$MODEL" --longest 512 --separators 1 \
    --bad refuse --output "$OUT/data-bin/XNLI.model" --raw data/raw

# baseline:XNLI
python -m recipes.lib.finetuning.sentences.baselines --data "$OUT/data-bin/XNLI.model" \
    --output "$OUT/baselines/XNLI.json" --metrics accuracy

# fetch
python data-bin-scripts/fetch.py squad/train-v1.1.json squad/dev-v1.1.json --output data/raw

# fetch:languages
python data-bin-scripts/fetch.py xquad/xquad.en.json xquad/xquad.ar.json xquad/xquad.de.json xquad/xquad.el.json xquad/xquad.es.json xquad/xquad.hi.json xquad/xquad.ru.json xquad/xquad.th.json xquad/xquad.tr.json xquad/xquad.vi.json xquad/xquad.zh.json mlqa/MLQA_V1.zip tydiqa/tydiqa-goldp-v1.1-dev.tgz \
    --output data/raw

# check:model.input
python -m recipes.lib.finetuning.questions.check --checkpoint "$MODEL" --max-length 512 \
    --output "$OUT/checked/model.input.json" -- --user-dir fairseq_posenc --task posenc_squad --criterion squad \
    --arch posenc_roberta_pretrained --pretrained "$MODEL" --segments input --lr-scheduler polynomial_decay \
    --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --clip-norm 1.0 \
    --dropout 0.1 --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 \
    --save-interval-updates 3500 --batch-size 32 --total-num-update 1

# prepare:model
python data-bin-scripts/prepare_spans.py --checkpoint "$MODEL" --tokenizer-path auto --version 1.1 \
    --train data/raw/squad/train-v1.1.json --eval data/raw/squad/dev-v1.1.json --bad refuse --longest 512 \
    --stride 128 --longest-question 64 --separators 1 --output "$OUT/data-bin/model" --without xquad=data/raw \
    --without mlqa=data/raw --without tydiqa=data/raw

# prepare:model.xquad
python data-bin-scripts/prepare_spans.py --checkpoint "$MODEL" --tokenizer-path auto --version 1.1 --set xquad \
    --languages en,ar,de,el,es,hi,ru,th,tr,vi,zh --data data/raw --bad refuse --longest 512 --stride 128 \
    --longest-question 64 --separators 1 --output "$OUT/data-bin/model.xquad"

# prepare:model.mlqa
python data-bin-scripts/prepare_spans.py --checkpoint "$MODEL" --tokenizer-path auto --version 1.1 --set mlqa \
    --languages en,ar,de,es,hi,vi,zh --data data/raw --bad refuse --longest 512 --stride 128 --longest-question 64 \
    --separators 1 --output "$OUT/data-bin/model.mlqa"

# prepare:model.tydiqa
python data-bin-scripts/prepare_spans.py --checkpoint "$MODEL" --tokenizer-path auto --version 1.1 \
    --set tydiqa --languages en,ar,bn,fi,id,ko,ru,sw,te --data data/raw --bad refuse --longest 512 --stride 128 \
    --longest-question 64 --separators 1 --output "$OUT/data-bin/model.tydiqa"

# baselines:xquad
python -m recipes.finetune_xtreme.score --task XQuAD --data "$OUT/data-bin/model.xquad" \
    --output "$OUT/baselines/xquad.json"

# baselines:mlqa
python -m recipes.finetune_xtreme.score --task MLQA --data "$OUT/data-bin/model.mlqa" \
    --output "$OUT/baselines/mlqa.json"

# baselines:tydiqa
python -m recipes.finetune_xtreme.score --task TyDiQA --data "$OUT/data-bin/model.tydiqa" \
    --output "$OUT/baselines/tydiqa.json"

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
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
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
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
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
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
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
python -m recipes.lib.finetuning.sentences.evaluate --data "$OUT/data-bin/XNLI.model" --metrics accuracy \
    --checkpoint "$OUT/checkpoints/XNLI.model.input.lr4e-05.e3.s1/checkpoint_best.pt" \
    --output "$OUT/scores/XNLI.model.input.lr4e-05.e3.s1.json" \
    --predictions "$OUT/predictions/XNLI.model.input.lr4e-05.e3.s1"

# train:model.input.lr1e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/model/spans.json" --count splits.train.windows \
    --batch 32 --epochs 3 --warmup 0.1 -- fairseq-train "$OUT/data-bin/model" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_squad --criterion squad --arch posenc_roberta_pretrained \
    --pretrained "$MODEL" --segments input --lr-scheduler polynomial_decay --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --clip-norm 1.0 --dropout 0.1 \
    --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 --save-interval-updates 3500 \
    --batch-size 32 --lr 1e-05 --seed 1 --save-dir "$OUT/checkpoints/model.input.lr1e-05.e3.s1" \
    --best-checkpoint-metric spans --maximize-best-checkpoint-metric --no-epoch-checkpoints \
    --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/model.input.lr1e-05.e3.s1.train.log"

# predict:model.input.lr1e-05.e3.s1
python -m recipes.lib.finetuning.questions.predict \
    --checkpoint "$OUT/checkpoints/model.input.lr1e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model" --output "$OUT/predictions/model.input.lr1e-05.e3.s1"

# score:model.input.lr1e-05.e3.s1
python -m recipes.lib.finetuning.questions.score --data "$OUT/data-bin/model" \
    --output "$OUT/scores/model.input.lr1e-05.e3.s1.json" \
    --predictions "$OUT/predictions/model.input.lr1e-05.e3.s1"

# predict:model.input.lr1e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr1e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.xquad" --output "$OUT/predictions/model.input.lr1e-05.e3.s1.xquad"

# score:model.input.lr1e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.score --task XQuAD --data "$OUT/data-bin/model.xquad" \
    --predictions "$OUT/predictions/model.input.lr1e-05.e3.s1.xquad" \
    --output "$OUT/scores/model.input.lr1e-05.e3.s1.xquad.json"

# predict:model.input.lr1e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr1e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.mlqa" --output "$OUT/predictions/model.input.lr1e-05.e3.s1.mlqa"

# score:model.input.lr1e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.score --task MLQA --data "$OUT/data-bin/model.mlqa" \
    --predictions "$OUT/predictions/model.input.lr1e-05.e3.s1.mlqa" \
    --output "$OUT/scores/model.input.lr1e-05.e3.s1.mlqa.json"

# predict:model.input.lr1e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr1e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.tydiqa" --output "$OUT/predictions/model.input.lr1e-05.e3.s1.tydiqa"

# score:model.input.lr1e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.score --task TyDiQA --data "$OUT/data-bin/model.tydiqa" \
    --predictions "$OUT/predictions/model.input.lr1e-05.e3.s1.tydiqa" \
    --output "$OUT/scores/model.input.lr1e-05.e3.s1.tydiqa.json"

# train:model.input.lr2e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/model/spans.json" --count splits.train.windows \
    --batch 32 --epochs 3 --warmup 0.1 -- fairseq-train "$OUT/data-bin/model" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_squad --criterion squad --arch posenc_roberta_pretrained \
    --pretrained "$MODEL" --segments input --lr-scheduler polynomial_decay --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --clip-norm 1.0 --dropout 0.1 \
    --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 --save-interval-updates 3500 \
    --batch-size 32 --lr 2e-05 --seed 1 --save-dir "$OUT/checkpoints/model.input.lr2e-05.e3.s1" \
    --best-checkpoint-metric spans --maximize-best-checkpoint-metric --no-epoch-checkpoints \
    --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/model.input.lr2e-05.e3.s1.train.log"

# predict:model.input.lr2e-05.e3.s1
python -m recipes.lib.finetuning.questions.predict \
    --checkpoint "$OUT/checkpoints/model.input.lr2e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model" --output "$OUT/predictions/model.input.lr2e-05.e3.s1"

# score:model.input.lr2e-05.e3.s1
python -m recipes.lib.finetuning.questions.score --data "$OUT/data-bin/model" \
    --output "$OUT/scores/model.input.lr2e-05.e3.s1.json" \
    --predictions "$OUT/predictions/model.input.lr2e-05.e3.s1"

# predict:model.input.lr2e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr2e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.xquad" --output "$OUT/predictions/model.input.lr2e-05.e3.s1.xquad"

# score:model.input.lr2e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.score --task XQuAD --data "$OUT/data-bin/model.xquad" \
    --predictions "$OUT/predictions/model.input.lr2e-05.e3.s1.xquad" \
    --output "$OUT/scores/model.input.lr2e-05.e3.s1.xquad.json"

# predict:model.input.lr2e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr2e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.mlqa" --output "$OUT/predictions/model.input.lr2e-05.e3.s1.mlqa"

# score:model.input.lr2e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.score --task MLQA --data "$OUT/data-bin/model.mlqa" \
    --predictions "$OUT/predictions/model.input.lr2e-05.e3.s1.mlqa" \
    --output "$OUT/scores/model.input.lr2e-05.e3.s1.mlqa.json"

# predict:model.input.lr2e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr2e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.tydiqa" --output "$OUT/predictions/model.input.lr2e-05.e3.s1.tydiqa"

# score:model.input.lr2e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.score --task TyDiQA --data "$OUT/data-bin/model.tydiqa" \
    --predictions "$OUT/predictions/model.input.lr2e-05.e3.s1.tydiqa" \
    --output "$OUT/scores/model.input.lr2e-05.e3.s1.tydiqa.json"

# train:model.input.lr3e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/model/spans.json" --count splits.train.windows \
    --batch 32 --epochs 3 --warmup 0.1 -- fairseq-train "$OUT/data-bin/model" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_squad --criterion squad --arch posenc_roberta_pretrained \
    --pretrained "$MODEL" --segments input --lr-scheduler polynomial_decay --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --clip-norm 1.0 --dropout 0.1 \
    --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 --save-interval-updates 3500 \
    --batch-size 32 --lr 3e-05 --seed 1 --save-dir "$OUT/checkpoints/model.input.lr3e-05.e3.s1" \
    --best-checkpoint-metric spans --maximize-best-checkpoint-metric --no-epoch-checkpoints \
    --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/model.input.lr3e-05.e3.s1.train.log"

# predict:model.input.lr3e-05.e3.s1
python -m recipes.lib.finetuning.questions.predict \
    --checkpoint "$OUT/checkpoints/model.input.lr3e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model" --output "$OUT/predictions/model.input.lr3e-05.e3.s1"

# score:model.input.lr3e-05.e3.s1
python -m recipes.lib.finetuning.questions.score --data "$OUT/data-bin/model" \
    --output "$OUT/scores/model.input.lr3e-05.e3.s1.json" \
    --predictions "$OUT/predictions/model.input.lr3e-05.e3.s1"

# predict:model.input.lr3e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr3e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.xquad" --output "$OUT/predictions/model.input.lr3e-05.e3.s1.xquad"

# score:model.input.lr3e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.score --task XQuAD --data "$OUT/data-bin/model.xquad" \
    --predictions "$OUT/predictions/model.input.lr3e-05.e3.s1.xquad" \
    --output "$OUT/scores/model.input.lr3e-05.e3.s1.xquad.json"

# predict:model.input.lr3e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr3e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.mlqa" --output "$OUT/predictions/model.input.lr3e-05.e3.s1.mlqa"

# score:model.input.lr3e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.score --task MLQA --data "$OUT/data-bin/model.mlqa" \
    --predictions "$OUT/predictions/model.input.lr3e-05.e3.s1.mlqa" \
    --output "$OUT/scores/model.input.lr3e-05.e3.s1.mlqa.json"

# predict:model.input.lr3e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr3e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.tydiqa" --output "$OUT/predictions/model.input.lr3e-05.e3.s1.tydiqa"

# score:model.input.lr3e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.score --task TyDiQA --data "$OUT/data-bin/model.tydiqa" \
    --predictions "$OUT/predictions/model.input.lr3e-05.e3.s1.tydiqa" \
    --output "$OUT/scores/model.input.lr3e-05.e3.s1.tydiqa.json"

# train:model.input.lr4e-05.e3.s1
python -m recipes.lib.scheduled --record "$OUT/data-bin/model/spans.json" --count splits.train.windows \
    --batch 32 --epochs 3 --warmup 0.1 -- fairseq-train "$OUT/data-bin/model" --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --user-dir fairseq_posenc --task posenc_squad --criterion squad --arch posenc_roberta_pretrained \
    --pretrained "$MODEL" --segments input --lr-scheduler polynomial_decay --optimizer adam \
    --adam-betas '(0.9, 0.999)' --adam-eps 1e-06 --weight-decay 0.01 --clip-norm 1.0 --dropout 0.1 \
    --attention-dropout 0.1 --pooler-dropout 0.1 --validate-interval-updates 3500 --save-interval-updates 3500 \
    --batch-size 32 --lr 4e-05 --seed 1 --save-dir "$OUT/checkpoints/model.input.lr4e-05.e3.s1" \
    --best-checkpoint-metric spans --maximize-best-checkpoint-metric --no-epoch-checkpoints \
    --keep-interval-updates 1 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/model.input.lr4e-05.e3.s1.train.log"

# predict:model.input.lr4e-05.e3.s1
python -m recipes.lib.finetuning.questions.predict \
    --checkpoint "$OUT/checkpoints/model.input.lr4e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model" --output "$OUT/predictions/model.input.lr4e-05.e3.s1"

# score:model.input.lr4e-05.e3.s1
python -m recipes.lib.finetuning.questions.score --data "$OUT/data-bin/model" \
    --output "$OUT/scores/model.input.lr4e-05.e3.s1.json" \
    --predictions "$OUT/predictions/model.input.lr4e-05.e3.s1"

# predict:model.input.lr4e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr4e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.xquad" --output "$OUT/predictions/model.input.lr4e-05.e3.s1.xquad"

# score:model.input.lr4e-05.e3.s1.xquad
python -m recipes.finetune_xtreme.score --task XQuAD --data "$OUT/data-bin/model.xquad" \
    --predictions "$OUT/predictions/model.input.lr4e-05.e3.s1.xquad" \
    --output "$OUT/scores/model.input.lr4e-05.e3.s1.xquad.json"

# predict:model.input.lr4e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr4e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.mlqa" --output "$OUT/predictions/model.input.lr4e-05.e3.s1.mlqa"

# score:model.input.lr4e-05.e3.s1.mlqa
python -m recipes.finetune_xtreme.score --task MLQA --data "$OUT/data-bin/model.mlqa" \
    --predictions "$OUT/predictions/model.input.lr4e-05.e3.s1.mlqa" \
    --output "$OUT/scores/model.input.lr4e-05.e3.s1.mlqa.json"

# predict:model.input.lr4e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.answer \
    --checkpoint "$OUT/checkpoints/model.input.lr4e-05.e3.s1/checkpoint_best.pt" --n-best 20 --longest-answer 30 \
    --data "$OUT/data-bin/model.tydiqa" --output "$OUT/predictions/model.input.lr4e-05.e3.s1.tydiqa"

# score:model.input.lr4e-05.e3.s1.tydiqa
python -m recipes.finetune_xtreme.score --task TyDiQA --data "$OUT/data-bin/model.tydiqa" \
    --predictions "$OUT/predictions/model.input.lr4e-05.e3.s1.tydiqa" \
    --output "$OUT/scores/model.input.lr4e-05.e3.s1.tydiqa.json"

# table:XNLI
python -m recipes.lib.finetuning.sentences.compare --output "$OUT" --protocol diet-xtreme \
    --variant XNLI model input input --lr 1e-05 --lr 2e-05 --lr 3e-05 --lr 4e-05 --epochs 3 --seed 1 \
    --differs '1 seed, not 5' --table xnli.json

# table:questions
python -m recipes.finetune_xtreme.compare --output "$OUT" --task XQuAD --task MLQA --task TyDiQA \
    --variant model input input --lr 1e-05 --lr 2e-05 --lr 3e-05 --lr 4e-05 --epochs 3 --seed 1 \
    --differs '1 seed, not 5' --table questions.json

# compare
python -m recipes.finetune_xtreme.join --output "$OUT" --task XNLI --task XQuAD --task MLQA --task TyDiQA \
    --variant model input

echo Done: "$OUT/comparison.json"
