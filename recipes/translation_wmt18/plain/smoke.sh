#!/usr/bin/env bash
# This plain script has the commands that recipes/translation_wmt18/run.sh runs with the preset smoke.
# Usage: recipes/translation_wmt18/plain/smoke.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
OUT=${1:-results/translation_wmt18-smoke-plain}
mkdir -p "$OUT/logs"

# check
python -m recipes.lib.check_models --output "$OUT/checked.json" --target-lang de --pos-enc none \
    --pos-enc sinusoidal --generate '--beam 2 --max-len-b 20' -- --user-dir fairseq_posenc --source-lang en \
    --target-lang de --arch posenc_transformer_tiny --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 32 \
    --encoder-attention-heads 2 --decoder-attention-heads 2 --share-all-embeddings \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 0.005 --max-tokens 2000 \
    --max-epoch 2

# builtin
python -m recipes.lib.invented.sentences --output "$OUT/builtin" --seed 1 --names en de --train 1000 \
    --valid 50 --test 50

# corpus
python -m recipes.lib.translation.parallel --folder "$OUT/builtin" --output "$OUT/raw" --source-lang en \
    --target-lang de --train-set train --valid-set valid --test-set test --bad-lines refuse --limit 1000

# subwords
python -m recipes.lib.translation.subwords --raw "$OUT/raw" --output "$OUT/subwords" --languages en de \
    --kind sentencepiece --model-type bpe --vocabulary 300 --longest 256 --bad-lines refuse --workers 1

# binarise
fairseq-preprocess --source-lang en --target-lang de --joined-dictionary --trainpref "$OUT/subwords/train" \
    --validpref "$OUT/subwords/valid" --testpref "$OUT/subwords/test" --destdir "$OUT/data-bin" --workers 1

# train:none
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --source-lang en \
    --target-lang de --arch posenc_transformer_tiny --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 32 \
    --encoder-attention-heads 2 --decoder-attention-heads 2 --share-all-embeddings \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 0.005 --max-tokens 2000 \
    --max-epoch 2 --pos-enc none --seed 1 --save-dir "$OUT/checkpoints/none" --keep-last-epochs 10 --update-freq 1 \
    --cpu --distributed-world-size 1 2>&1 | tee "$OUT/logs/none.train.log"

# average:none
python -m fairseq_posenc average --inputs "$OUT/checkpoints/none" --num-epoch-checkpoints 2 \
    --output "$OUT/averaged/none.pt"

# generate:none
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en \
    --target-lang de --path "$OUT/averaged/none.pt" --bpe sentencepiece \
    --sentencepiece-model "$OUT/subwords/model.model" --beam 2 --max-len-b 20 --gen-subset test \
    --results-path "$OUT/generated/none" --cpu

# score:none
python -m recipes.lib.translation.score --generated "$OUT/generated/none/generate-test.txt" \
    --reference "$OUT/raw/test.de" --language de --translation "$OUT/translations/none.de" \
    --output "$OUT/scores/none.json"

# train:sinusoidal
fairseq-train "$OUT/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --source-lang en \
    --target-lang de --arch posenc_transformer_tiny --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 32 \
    --encoder-attention-heads 2 --decoder-attention-heads 2 --share-all-embeddings \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 0.005 --max-tokens 2000 \
    --max-epoch 2 --pos-enc sinusoidal --seed 1 --save-dir "$OUT/checkpoints/sinusoidal" --keep-last-epochs 10 \
    --update-freq 1 --cpu --distributed-world-size 1 2>&1 | tee "$OUT/logs/sinusoidal.train.log"

# average:sinusoidal
python -m fairseq_posenc average --inputs "$OUT/checkpoints/sinusoidal" --num-epoch-checkpoints 2 \
    --output "$OUT/averaged/sinusoidal.pt"

# generate:sinusoidal
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 "$OUT/data-bin" --user-dir fairseq_posenc --source-lang en \
    --target-lang de --path "$OUT/averaged/sinusoidal.pt" --bpe sentencepiece \
    --sentencepiece-model "$OUT/subwords/model.model" --beam 2 --max-len-b 20 --gen-subset test \
    --results-path "$OUT/generated/sinusoidal" --cpu

# score:sinusoidal
python -m recipes.lib.translation.score --generated "$OUT/generated/sinusoidal/generate-test.txt" \
    --reference "$OUT/raw/test.de" --language de --translation "$OUT/translations/sinusoidal.de" \
    --output "$OUT/scores/sinusoidal.json"

# measure
python -m recipes.lib.translation.measure --output "$OUT/measured.json" --seconds 1 \
    --generate '--beam 2 --max-len-b 20' --checkpoint "none:$OUT/averaged/none.pt" \
    --checkpoint "sinusoidal:$OUT/averaged/sinusoidal.pt" --cpu

# lengths
python -m recipes.lib.translation.lengths --language de --source "$OUT/raw/test.en" \
    --reference "$OUT/raw/test.de" --bound 6 --measured "$OUT/measured.json" --scores "$OUT/scores" \
    --translations "$OUT/translations" --output "$OUT/lengths" --system none:none --system sinusoidal:sinusoidal

# compare
python -m recipes.translation_wmt18.compare --output "$OUT" --seed 1 --direction en de --trained-seed 1 \
    --pos-enc none --pos-enc sinusoidal --differs text --differs model --differs updates --differs training \
    --differs decoding

echo Done: "$OUT/comparison.json" "$OUT/bleu.png"
