#!/usr/bin/env bash
# This plain script has the commands that recipes/lm_wikitext103/run.sh runs with the preset wt103.
# Usage: recipes/lm_wikitext103/plain/wt103.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# The preset trains each model with 10 seeds; this script uses the first one only.
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/lm_wikitext103-wt103-plain}
mkdir -p "$OUT/logs"

# check
python -m recipes.lm_wikitext103.check --output "$OUT/checked.json" --pos-enc 'xl[biases=tied]' \
    --pos-enc 'gcdf[biases=tied]' --pos-enc 'lfhc[clip=16]' --pos-enc 'shaw[clip=8,share=none]' \
    --pos-enc 'diet-rel[clip=150]' --pos-enc t5 --trained 300 --longest 704 -- --user-dir fairseq_posenc \
    --task posenc_lm_memory --arch posenc_transformer_lm_wt103 --tokens-per-sample 150 --criterion adaptive_loss \
    --ddp-backend legacy_ddp --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 \
    --clip-norm 0.25 --lr 0.00025 --lr-scheduler cosine --warmup-updates 0 --max-update 200000 --batch-size 60 \
    --batch-size-valid 10 --dropout 0.0 --activation-dropout 0.0 --adaptive-softmax-dropout 0.0 \
    --attention-dropout 0.0 --validate-interval-updates 4000 --save-interval-updates 4000

# fetch
python data-bin-scripts/fetch.py wikitext-103/wikitext-103-v1.zip --output data/raw

# prepare
python data-bin-scripts/prepare_words.py --text data/raw/wikitext-103/wikitext-103-v1 --output "$OUT/text" \
    --types 267735

# binarise
fairseq-preprocess --only-source --trainpref "$OUT/text/train.txt" --validpref "$OUT/text/valid.txt" \
    --testpref "$OUT/text/test.txt" --destdir "$OUT/data-bin" --padding-factor 1 --workers 8

# train:xl.biases=tied
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm_wt103 --tokens-per-sample 150 --criterion adaptive_loss --ddp-backend legacy_ddp \
    --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 --clip-norm 0.25 \
    --lr 0.00025 --lr-scheduler cosine --warmup-updates 0 --max-update 200000 --batch-size 60 \
    --batch-size-valid 10 --dropout 0.0 --activation-dropout 0.0 --adaptive-softmax-dropout 0.0 \
    --attention-dropout 0.0 --validate-interval-updates 4000 --save-interval-updates 4000 --pos-enc xl \
    --pos-enc-args biases=tied --mem-length 150 --seed 1 --save-dir "$OUT/checkpoints/xl.biases=tied" \
    --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/xl.biases=tied.train.log"

# evaluate:xl.biases=tied.150
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/xl.biases=tied/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 150 --segment 150 \
    --output "$OUT/scores/xl.biases=tied.150.json"

# evaluate:xl.biases=tied.640
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/xl.biases=tied/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 640 --segment 64 --same-length --clamp 400 \
    --output "$OUT/scores/xl.biases=tied.640.json"

# train:gcdf.biases=tied
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm_wt103 --tokens-per-sample 150 --criterion adaptive_loss --ddp-backend legacy_ddp \
    --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 --clip-norm 0.25 \
    --lr 0.00025 --lr-scheduler cosine --warmup-updates 0 --max-update 200000 --batch-size 60 \
    --batch-size-valid 10 --dropout 0.0 --activation-dropout 0.0 --adaptive-softmax-dropout 0.0 \
    --attention-dropout 0.0 --validate-interval-updates 4000 --save-interval-updates 4000 --pos-enc gcdf \
    --pos-enc-args biases=tied --mem-length 150 --seed 1 --save-dir "$OUT/checkpoints/gcdf.biases=tied" \
    --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/gcdf.biases=tied.train.log"

# evaluate:gcdf.biases=tied.150
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/gcdf.biases=tied/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 150 --segment 150 \
    --output "$OUT/scores/gcdf.biases=tied.150.json"

# evaluate:gcdf.biases=tied.640
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/gcdf.biases=tied/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 640 --segment 64 --same-length --clamp 400 \
    --output "$OUT/scores/gcdf.biases=tied.640.json"

# train:lfhc.clip=16
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm_wt103 --tokens-per-sample 150 --criterion adaptive_loss --ddp-backend legacy_ddp \
    --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 --clip-norm 0.25 \
    --lr 0.00025 --lr-scheduler cosine --warmup-updates 0 --max-update 200000 --batch-size 60 \
    --batch-size-valid 10 --dropout 0.0 --activation-dropout 0.0 --adaptive-softmax-dropout 0.0 \
    --attention-dropout 0.0 --validate-interval-updates 4000 --save-interval-updates 4000 --pos-enc lfhc \
    --pos-enc-args clip=16 --mem-length 150 --seed 1 --save-dir "$OUT/checkpoints/lfhc.clip=16" \
    --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/lfhc.clip=16.train.log"

# evaluate:lfhc.clip=16.150
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/lfhc.clip=16/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 150 --segment 150 \
    --output "$OUT/scores/lfhc.clip=16.150.json"

# evaluate:lfhc.clip=16.640
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/lfhc.clip=16/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 640 --segment 64 --same-length \
    --output "$OUT/scores/lfhc.clip=16.640.json"

# train:shaw.clip=8.share=none
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm_wt103 --tokens-per-sample 150 --criterion adaptive_loss --ddp-backend legacy_ddp \
    --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 --clip-norm 0.25 \
    --lr 0.00025 --lr-scheduler cosine --warmup-updates 0 --max-update 200000 --batch-size 60 \
    --batch-size-valid 10 --dropout 0.0 --activation-dropout 0.0 --adaptive-softmax-dropout 0.0 \
    --attention-dropout 0.0 --validate-interval-updates 4000 --save-interval-updates 4000 --pos-enc shaw \
    --pos-enc-args clip=8,share=none --mem-length 150 --seed 1 \
    --save-dir "$OUT/checkpoints/shaw.clip=8.share=none" --no-epoch-checkpoints --keep-interval-updates 2 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/shaw.clip=8.share=none.train.log"

# evaluate:shaw.clip=8.share=none.150
python -m recipes.lm_wikitext103.evaluate \
    --checkpoint "$OUT/checkpoints/shaw.clip=8.share=none/checkpoint_best.pt" --data "$OUT/data-bin" --split test \
    --streams 10 --memory 150 --segment 150 --output "$OUT/scores/shaw.clip=8.share=none.150.json"

# evaluate:shaw.clip=8.share=none.640
python -m recipes.lm_wikitext103.evaluate \
    --checkpoint "$OUT/checkpoints/shaw.clip=8.share=none/checkpoint_best.pt" --data "$OUT/data-bin" --split test \
    --streams 10 --memory 640 --segment 64 --same-length --output "$OUT/scores/shaw.clip=8.share=none.640.json"

# train:diet-rel.clip=150
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm_wt103 --tokens-per-sample 150 --criterion adaptive_loss --ddp-backend legacy_ddp \
    --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 --clip-norm 0.25 \
    --lr 0.00025 --lr-scheduler cosine --warmup-updates 0 --max-update 200000 --batch-size 60 \
    --batch-size-valid 10 --dropout 0.0 --activation-dropout 0.0 --adaptive-softmax-dropout 0.0 \
    --attention-dropout 0.0 --validate-interval-updates 4000 --save-interval-updates 4000 --pos-enc diet-rel \
    --pos-enc-args clip=150 --mem-length 150 --seed 1 --save-dir "$OUT/checkpoints/diet-rel.clip=150" \
    --no-epoch-checkpoints --keep-interval-updates 2 --update-freq 1 --distributed-world-size 1 \
    2>&1 | tee "$OUT/logs/diet-rel.clip=150.train.log"

# evaluate:diet-rel.clip=150.150
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/diet-rel.clip=150/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 150 --segment 150 \
    --output "$OUT/scores/diet-rel.clip=150.150.json"

# evaluate:diet-rel.clip=150.640
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/diet-rel.clip=150/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 640 --segment 64 --same-length \
    --output "$OUT/scores/diet-rel.clip=150.640.json"

# train:t5
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --task posenc_lm_memory \
    --arch posenc_transformer_lm_wt103 --tokens-per-sample 150 --criterion adaptive_loss --ddp-backend legacy_ddp \
    --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-08 --weight-decay 0.01 --clip-norm 0.25 \
    --lr 0.00025 --lr-scheduler cosine --warmup-updates 0 --max-update 200000 --batch-size 60 \
    --batch-size-valid 10 --dropout 0.0 --activation-dropout 0.0 --adaptive-softmax-dropout 0.0 \
    --attention-dropout 0.0 --validate-interval-updates 4000 --save-interval-updates 4000 --pos-enc t5 \
    --mem-length 150 --seed 1 --save-dir "$OUT/checkpoints/t5" --no-epoch-checkpoints --keep-interval-updates 2 \
    --update-freq 1 --distributed-world-size 1 2>&1 | tee "$OUT/logs/t5.train.log"

# evaluate:t5.150
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/t5/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 150 --segment 150 --output "$OUT/scores/t5.150.json"

# evaluate:t5.640
python -m recipes.lm_wikitext103.evaluate --checkpoint "$OUT/checkpoints/t5/checkpoint_best.pt" \
    --data "$OUT/data-bin" --split test --streams 10 --memory 640 --segment 64 --same-length \
    --output "$OUT/scores/t5.640.json"

# compare
python -m recipes.lm_wikitext103.compare --output "$OUT" --text "$OUT/text" --split test --seed 1 --seeds 1 \
    --pos-enc 'xl[biases=tied]' --memories 150,640 --pos-enc 'gcdf[biases=tied]' --memories 150,640 \
    --pos-enc 'lfhc[clip=16]' --memories 150,640 --pos-enc 'shaw[clip=8,share=none]' --memories 150,640 \
    --pos-enc 'diet-rel[clip=150]' --memories 150,640 --pos-enc t5 --memories 150,640

echo Done: "$OUT/comparison.json" "$OUT/curves.png"
