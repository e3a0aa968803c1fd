#!/usr/bin/env bash
# This plain script has the commands that recipes/demo/run.sh runs with the preset demo.
# Usage: recipes/demo/plain/demo.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/demo-demo-plain}
mkdir -p "$OUT/logs"

# corpus
python -m recipes.lib.invented.sentences --output "$OUT/raw" --seed 1 --train 12000 --valid 300 --test 500

# subwords
python -m recipes.lib.translation.subwords --raw "$OUT/raw" --output "$OUT/subwords" --languages en inv \
    --model-type bpe --vocabulary 400

# binarise
fairseq-preprocess --source-lang en --target-lang inv --joined-dictionary --workers 1 \
    --trainpref "$OUT/subwords/train" --validpref "$OUT/subwords/valid" --testpref "$OUT/subwords/test" \
    --destdir "$OUT/data-bin"

# train:none
fairseq-train "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --arch posenc_transformer_tiny --pos-enc none --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64 \
    --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128 --encoder-attention-heads 4 \
    --decoder-attention-heads 4 --share-all-embeddings --max-source-positions 64 --max-target-positions 64 \
    --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0 --optimizer adam \
    --adam-betas '(0.9, 0.98)' --lr 0.005 --lr-scheduler polynomial_decay --warmup-updates 100 \
    --total-num-update 500 --max-update 500 --max-tokens 1000 --seed 1 --cpu --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --no-epoch-checkpoints --save-dir "$OUT/checkpoints/none" 2>&1 | tee "$OUT/logs/none.train.log"

# generate:none
fairseq-generate "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --path "$OUT/checkpoints/none/checkpoint_last.pt" --gen-subset test --bpe sentencepiece \
    --sentencepiece-model "$OUT/subwords/model.model" --beam 4 --max-tokens 4000 --cpu --distributed-world-size 1 \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --results-path "$OUT/generated/none"

# score:none
python -m recipes.lib.translation.score --generated "$OUT/generated/none/generate-test.txt" \
    --reference "$OUT/raw/test.inv" --output "$OUT/scores/none"

# train:sinusoidal
fairseq-train "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --arch posenc_transformer_tiny --pos-enc sinusoidal --encoder-layers 2 --decoder-layers 2 \
    --encoder-embed-dim 64 --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128 \
    --encoder-attention-heads 4 --decoder-attention-heads 4 --share-all-embeddings --max-source-positions 64 \
    --max-target-positions 64 --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0 \
    --optimizer adam --adam-betas '(0.9, 0.98)' --lr 0.005 --lr-scheduler polynomial_decay --warmup-updates 100 \
    --total-num-update 500 --max-update 500 --max-tokens 1000 --seed 1 --cpu --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --no-epoch-checkpoints --save-dir "$OUT/checkpoints/sinusoidal" 2>&1 | tee "$OUT/logs/sinusoidal.train.log"

# generate:sinusoidal
fairseq-generate "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --path "$OUT/checkpoints/sinusoidal/checkpoint_last.pt" --gen-subset test --bpe sentencepiece \
    --sentencepiece-model "$OUT/subwords/model.model" --beam 4 --max-tokens 4000 --cpu --distributed-world-size 1 \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --results-path "$OUT/generated/sinusoidal"

# score:sinusoidal
python -m recipes.lib.translation.score --generated "$OUT/generated/sinusoidal/generate-test.txt" \
    --reference "$OUT/raw/test.inv" --output "$OUT/scores/sinusoidal"

# train:shaw
fairseq-train "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --arch posenc_transformer_tiny --pos-enc shaw --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64 \
    --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128 --encoder-attention-heads 4 \
    --decoder-attention-heads 4 --share-all-embeddings --max-source-positions 64 --max-target-positions 64 \
    --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0 --optimizer adam \
    --adam-betas '(0.9, 0.98)' --lr 0.005 --lr-scheduler polynomial_decay --warmup-updates 100 \
    --total-num-update 500 --max-update 500 --max-tokens 1000 --seed 1 --cpu --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --no-epoch-checkpoints --save-dir "$OUT/checkpoints/shaw" 2>&1 | tee "$OUT/logs/shaw.train.log"

# generate:shaw
fairseq-generate "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --path "$OUT/checkpoints/shaw/checkpoint_last.pt" --gen-subset test --bpe sentencepiece \
    --sentencepiece-model "$OUT/subwords/model.model" --beam 4 --max-tokens 4000 --cpu --distributed-world-size 1 \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --results-path "$OUT/generated/shaw"

# score:shaw
python -m recipes.lib.translation.score --generated "$OUT/generated/shaw/generate-test.txt" \
    --reference "$OUT/raw/test.inv" --output "$OUT/scores/shaw"

# train:rope
fairseq-train "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --arch posenc_transformer_tiny --pos-enc rope --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64 \
    --decoder-embed-dim 64 --encoder-ffn-embed-dim 128 --decoder-ffn-embed-dim 128 --encoder-attention-heads 4 \
    --decoder-attention-heads 4 --share-all-embeddings --max-source-positions 64 --max-target-positions 64 \
    --dropout 0 --criterion label_smoothed_cross_entropy --label-smoothing 0 --optimizer adam \
    --adam-betas '(0.9, 0.98)' --lr 0.005 --lr-scheduler polynomial_decay --warmup-updates 100 \
    --total-num-update 500 --max-update 500 --max-tokens 1000 --seed 1 --cpu --required-batch-size-multiple 1 \
    --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json --log-interval 20 \
    --no-epoch-checkpoints --save-dir "$OUT/checkpoints/rope" 2>&1 | tee "$OUT/logs/rope.train.log"

# generate:rope
fairseq-generate "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en --target-lang inv \
    --path "$OUT/checkpoints/rope/checkpoint_last.pt" --gen-subset test --bpe sentencepiece \
    --sentencepiece-model "$OUT/subwords/model.model" --beam 4 --max-tokens 4000 --cpu --distributed-world-size 1 \
    --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar --log-format json \
    --results-path "$OUT/generated/rope"

# score:rope
python -m recipes.lib.translation.score --generated "$OUT/generated/rope/generate-test.txt" \
    --reference "$OUT/raw/test.inv" --output "$OUT/scores/rope"

# report
python -m recipes.demo.report --output "$OUT" --encodings none sinusoidal shaw rope --seed 1 --seeds 1 \
    --least-gap 10 --unmeasured

echo Done: "$OUT/results.json" "$OUT/results.md" "$OUT/bleu.png"
