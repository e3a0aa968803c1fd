#!/usr/bin/env bash
# This plain script has the commands that recipes/translation_wmt18/run.sh runs with the preset table4-shaw.
# Usage: recipes/translation_wmt18/plain/table4-shaw.sh [OUTPUT_FOLDER]   (relative to the root of the repository)
# This file is generated. To change it, change the plan or the preset and run `python -m recipes.lib.plain`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=recipes/lib/env.sh
source recipes/lib/env.sh # uses .venv, unless another environment is active
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
OUT=${1:-results/translation_wmt18-table4-shaw-plain}
mkdir -p "$OUT/logs"

# check
python -m recipes.lib.check_models --output "$OUT/checked.json" --target-lang de --target-lang en \
    --target-lang cs --pos-enc 'shaw[clip=20,values=true]' \
    --generate '--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50' \
    -- --user-dir fairseq_posenc --source-lang en --target-lang de --arch posenc_transformer_wmt_en_de \
    --share-all-embeddings --optimizer adam --adam-betas '(0.9, 0.997)' --adam-eps 1e-09 --lr 0.000988 \
    --lr-scheduler inverse_sqrt --warmup-updates 8000 --warmup-init-lr 0 --dropout 0.1 --attention-dropout 0.1 \
    --activation-dropout 0.1 --encoder-normalize-before --decoder-normalize-before \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 4096 --max-update 250000 \
    --save-interval-updates 2500

# prepare:en-de
bash data-bin-scripts/prepare_wmt18.sh --pair en-de --output "$OUT/en-de/wmt18" --raw data/raw --workers 8

# corpus:en-de
python -m recipes.lib.translation.parallel --folder "$OUT/en-de/wmt18" --output "$OUT/en-de/raw" \
    --source-lang en --target-lang de --train-set train --valid-set valid --test-set test --bad-lines drop \
    --limit 0

# subwords:en-de
python -m recipes.lib.translation.subwords --raw "$OUT/en-de/raw" --output "$OUT/en-de/subwords" \
    --languages en de --kind sentencepiece --model-type unigram --vocabulary 32000 --longest 256 --bad-lines drop \
    --workers 8

# binarise:en-de
fairseq-preprocess --source-lang en --target-lang de --joined-dictionary \
    --trainpref "$OUT/en-de/subwords/train" --validpref "$OUT/en-de/subwords/valid" \
    --testpref "$OUT/en-de/subwords/test" --destdir "$OUT/en-de/data-bin" --workers 8

# prepare:en-cs
bash data-bin-scripts/prepare_wmt18.sh --pair en-cs --output "$OUT/en-cs/wmt18" --raw data/raw --workers 8

# corpus:en-cs
python -m recipes.lib.translation.parallel --folder "$OUT/en-cs/wmt18" --output "$OUT/en-cs/raw" \
    --source-lang en --target-lang cs --train-set train --valid-set valid --test-set test --bad-lines drop \
    --limit 0

# subwords:en-cs
python -m recipes.lib.translation.subwords --raw "$OUT/en-cs/raw" --output "$OUT/en-cs/subwords" \
    --languages en cs --kind sentencepiece --model-type unigram --vocabulary 32000 --longest 256 --bad-lines drop \
    --workers 8

# binarise:en-cs
fairseq-preprocess --source-lang en --target-lang cs --joined-dictionary \
    --trainpref "$OUT/en-cs/subwords/train" --validpref "$OUT/en-cs/subwords/valid" \
    --testpref "$OUT/en-cs/subwords/test" --destdir "$OUT/en-cs/data-bin" --workers 8

# train:en-de.shaw.clip=20.values=true
fairseq-train "$OUT/en-de/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --source-lang en \
    --target-lang de --arch posenc_transformer_wmt_en_de --share-all-embeddings --optimizer adam \
    --adam-betas '(0.9, 0.997)' --adam-eps 1e-09 --lr 0.000988 --lr-scheduler inverse_sqrt --warmup-updates 8000 \
    --warmup-init-lr 0 --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1 --encoder-normalize-before \
    --decoder-normalize-before --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 4096 \
    --max-update 250000 --save-interval-updates 2500 --pos-enc shaw --pos-enc-args clip=20,values=true --seed 1 \
    --save-dir "$OUT/en-de/checkpoints/shaw.clip=20.values=true" --no-epoch-checkpoints --keep-interval-updates 10 \
    --update-freq 8 --distributed-world-size 1 2>&1 | tee "$OUT/logs/en-de.shaw.clip=20.values=true.train.log"

# average:en-de.shaw.clip=20.values=true
python -m fairseq_posenc average --inputs "$OUT/en-de/checkpoints/shaw.clip=20.values=true" \
    --num-update-checkpoints 5 --output "$OUT/en-de/averaged/shaw.clip=20.values=true.pt" --every 2500

# generate:en-de.shaw.clip=20.values=true
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 "$OUT/en-de/data-bin" --user-dir fairseq_posenc --source-lang en \
    --target-lang de --path "$OUT/en-de/averaged/shaw.clip=20.values=true.pt" --bpe sentencepiece \
    --sentencepiece-model "$OUT/en-de/subwords/model.model" --task posenc_translation --beam 10 --lenpen 0.6 \
    --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50 --gen-subset test \
    --results-path "$OUT/en-de/generated/shaw.clip=20.values=true"

# score:en-de.shaw.clip=20.values=true
python -m recipes.lib.translation.score \
    --generated "$OUT/en-de/generated/shaw.clip=20.values=true/generate-test.txt" \
    --reference "$OUT/en-de/raw/test.de" --language de \
    --translation "$OUT/en-de/translations/shaw.clip=20.values=true.de" \
    --output "$OUT/en-de/scores/shaw.clip=20.values=true.json"

# train:de-en.shaw.clip=20.values=true
fairseq-train "$OUT/en-de/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --source-lang de \
    --target-lang en --arch posenc_transformer_wmt_en_de --share-all-embeddings --optimizer adam \
    --adam-betas '(0.9, 0.997)' --adam-eps 1e-09 --lr 0.000988 --lr-scheduler inverse_sqrt --warmup-updates 8000 \
    --warmup-init-lr 0 --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1 --encoder-normalize-before \
    --decoder-normalize-before --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 4096 \
    --max-update 250000 --save-interval-updates 2500 --pos-enc shaw --pos-enc-args clip=20,values=true --seed 1 \
    --save-dir "$OUT/de-en/checkpoints/shaw.clip=20.values=true" --no-epoch-checkpoints --keep-interval-updates 10 \
    --update-freq 8 --distributed-world-size 1 2>&1 | tee "$OUT/logs/de-en.shaw.clip=20.values=true.train.log"

# average:de-en.shaw.clip=20.values=true
python -m fairseq_posenc average --inputs "$OUT/de-en/checkpoints/shaw.clip=20.values=true" \
    --num-update-checkpoints 5 --output "$OUT/de-en/averaged/shaw.clip=20.values=true.pt" --every 2500

# generate:de-en.shaw.clip=20.values=true
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 "$OUT/en-de/data-bin" --user-dir fairseq_posenc --source-lang de \
    --target-lang en --path "$OUT/de-en/averaged/shaw.clip=20.values=true.pt" --bpe sentencepiece \
    --sentencepiece-model "$OUT/en-de/subwords/model.model" --task posenc_translation --beam 10 --lenpen 0.6 \
    --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50 --gen-subset test \
    --results-path "$OUT/de-en/generated/shaw.clip=20.values=true"

# score:de-en.shaw.clip=20.values=true
python -m recipes.lib.translation.score \
    --generated "$OUT/de-en/generated/shaw.clip=20.values=true/generate-test.txt" \
    --reference "$OUT/en-de/raw/test.en" --language en \
    --translation "$OUT/de-en/translations/shaw.clip=20.values=true.en" \
    --output "$OUT/de-en/scores/shaw.clip=20.values=true.json"

# train:en-cs.shaw.clip=20.values=true
fairseq-train "$OUT/en-cs/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --source-lang en \
    --target-lang cs --arch posenc_transformer_wmt_en_de --share-all-embeddings --optimizer adam \
    --adam-betas '(0.9, 0.997)' --adam-eps 1e-09 --lr 0.000988 --lr-scheduler inverse_sqrt --warmup-updates 8000 \
    --warmup-init-lr 0 --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1 --encoder-normalize-before \
    --decoder-normalize-before --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 4096 \
    --max-update 250000 --save-interval-updates 2500 --pos-enc shaw --pos-enc-args clip=20,values=true --seed 1 \
    --save-dir "$OUT/en-cs/checkpoints/shaw.clip=20.values=true" --no-epoch-checkpoints --keep-interval-updates 10 \
    --update-freq 8 --distributed-world-size 1 2>&1 | tee "$OUT/logs/en-cs.shaw.clip=20.values=true.train.log"

# average:en-cs.shaw.clip=20.values=true
python -m fairseq_posenc average --inputs "$OUT/en-cs/checkpoints/shaw.clip=20.values=true" \
    --num-update-checkpoints 5 --output "$OUT/en-cs/averaged/shaw.clip=20.values=true.pt" --every 2500

# generate:en-cs.shaw.clip=20.values=true
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 "$OUT/en-cs/data-bin" --user-dir fairseq_posenc --source-lang en \
    --target-lang cs --path "$OUT/en-cs/averaged/shaw.clip=20.values=true.pt" --bpe sentencepiece \
    --sentencepiece-model "$OUT/en-cs/subwords/model.model" --task posenc_translation --beam 10 --lenpen 0.6 \
    --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50 --gen-subset test \
    --results-path "$OUT/en-cs/generated/shaw.clip=20.values=true"

# score:en-cs.shaw.clip=20.values=true
python -m recipes.lib.translation.score \
    --generated "$OUT/en-cs/generated/shaw.clip=20.values=true/generate-test.txt" \
    --reference "$OUT/en-cs/raw/test.cs" --language cs \
    --translation "$OUT/en-cs/translations/shaw.clip=20.values=true.cs" \
    --output "$OUT/en-cs/scores/shaw.clip=20.values=true.json"

# train:cs-en.shaw.clip=20.values=true
fairseq-train "$OUT/en-cs/data-bin" --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 \
    --no-progress-bar --log-format json --log-interval 20 --user-dir fairseq_posenc --source-lang cs \
    --target-lang en --arch posenc_transformer_wmt_en_de --share-all-embeddings --optimizer adam \
    --adam-betas '(0.9, 0.997)' --adam-eps 1e-09 --lr 0.000988 --lr-scheduler inverse_sqrt --warmup-updates 8000 \
    --warmup-init-lr 0 --dropout 0.1 --attention-dropout 0.1 --activation-dropout 0.1 --encoder-normalize-before \
    --decoder-normalize-before --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 4096 \
    --max-update 250000 --save-interval-updates 2500 --pos-enc shaw --pos-enc-args clip=20,values=true --seed 1 \
    --save-dir "$OUT/cs-en/checkpoints/shaw.clip=20.values=true" --no-epoch-checkpoints --keep-interval-updates 10 \
    --update-freq 8 --distributed-world-size 1 2>&1 | tee "$OUT/logs/cs-en.shaw.clip=20.values=true.train.log"

# average:cs-en.shaw.clip=20.values=true
python -m fairseq_posenc average --inputs "$OUT/cs-en/checkpoints/shaw.clip=20.values=true" \
    --num-update-checkpoints 5 --output "$OUT/cs-en/averaged/shaw.clip=20.values=true.pt" --every 2500

# generate:cs-en.shaw.clip=20.values=true
fairseq-generate --required-batch-size-multiple 1 --num-workers 0 --data-buffer-size 0 --no-progress-bar \
    --log-format json --distributed-world-size 1 "$OUT/en-cs/data-bin" --user-dir fairseq_posenc --source-lang cs \
    --target-lang en --path "$OUT/cs-en/averaged/shaw.clip=20.values=true.pt" --bpe sentencepiece \
    --sentencepiece-model "$OUT/en-cs/subwords/model.model" --task posenc_translation --beam 10 --lenpen 0.6 \
    --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50 --gen-subset test \
    --results-path "$OUT/cs-en/generated/shaw.clip=20.values=true"

# score:cs-en.shaw.clip=20.values=true
python -m recipes.lib.translation.score \
    --generated "$OUT/cs-en/generated/shaw.clip=20.values=true/generate-test.txt" \
    --reference "$OUT/en-cs/raw/test.en" --language en \
    --translation "$OUT/cs-en/translations/shaw.clip=20.values=true.en" \
    --output "$OUT/cs-en/scores/shaw.clip=20.values=true.json"

# measure:en-de
python -m recipes.lib.translation.measure --output "$OUT/en-de/measured.json" --seconds 12 \
    --generate '--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50' \
    --checkpoint "shaw[clip=20,values=true]:$OUT/en-de/averaged/shaw.clip=20.values=true.pt"

# measure:de-en
python -m recipes.lib.translation.measure --output "$OUT/de-en/measured.json" --seconds 12 \
    --generate '--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50' \
    --checkpoint "shaw[clip=20,values=true]:$OUT/de-en/averaged/shaw.clip=20.values=true.pt"

# measure:en-cs
python -m recipes.lib.translation.measure --output "$OUT/en-cs/measured.json" --seconds 12 \
    --generate '--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50' \
    --checkpoint "shaw[clip=20,values=true]:$OUT/en-cs/averaged/shaw.clip=20.values=true.pt"

# measure:cs-en
python -m recipes.lib.translation.measure --output "$OUT/cs-en/measured.json" --seconds 12 \
    --generate '--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt --max-tokens 4096 --max-len-a 1 --max-len-b 50' \
    --checkpoint "shaw[clip=20,values=true]:$OUT/cs-en/averaged/shaw.clip=20.values=true.pt"

# compare
python -m recipes.translation_wmt18.compare --output "$OUT" --seed 1 --direction en de --direction de en \
    --direction en cs --direction cs en --trained-seed 1 --pos-enc 'shaw[clip=20,values=true]'

echo Done: "$OUT/comparison.json" "$OUT/bleu.png"
