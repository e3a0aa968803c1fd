# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # run.sh has the settings, and uses the variables
# run.sh and translate.sh source this file. It says where the files of a direction are, and checks the settings.
stacks=(encoder decoder)
declare -A own=([seed]=--seeds [arch]=--arch [source-lang]=--direction [target-lang]=--direction [keep-last-epochs]=--average
  [keep-interval-updates]=--average [no-epoch-checkpoints]=--average)

# place DIRECTION: set its languages (`other` is not English), the folder of its text, and the flags of its translation.
# Both directions of a pair of languages share the text; `pair` is the first of them.
place() {
  local way only=''
  source=${1%-*} target=${1#*-} pair=$1 folder=$output other=${1%-en}
  other=${other#en-}
  languages=(--source-lang "$source" --target-lang "$target")
  for way in ${direction//,/ }; do
    [[ $way != "$1" && $way != "$target-$source" ]] || { pair=$way && break; }
  done
  [[ $direction != *,* ]] || folder=$output/$pair
  # fairseq accepts one subword model. It must be that of the source, because any model can undo subwords.
  [[ $dictionary == joint ]] || only=.$source
  decoding=("${languages[@]}" --bpe sentencepiece --sentencepiece-model "$folder/subwords/model$only.model")
  [[ $tokenizer != fastbpe ]] || decoding=("${languages[@]}" --tokenizer moses --bpe fastbpe --bpe-codes "$folder/subwords/codes$only")
  search=("${generate[@]}")
  [[ " ${generate[*]} " != *" --lenpen-form "* ]] || search=(--task posenc_translation "${generate[@]}") # it has the flag
  decoding+=("${search[@]}")
  ((train_words == 0)) || decoding+=(--skip-invalid-size-inputs-valid-test) # long sentences; the scores count them
}

# checkpoint NAME: print the path of the model that translates.
checkpoint() { if ((average == 1)); then echo "$output/checkpoints/$1/checkpoint_last.pt"; else echo "$output/averaged/$1.pt"; fi; }

# own_files: print the files of --corpus DIR in the current direction; a file may be plain or end in .gz.
own_files() {
  local set file
  for set in train valid "$test_set"; do
    [[ $set != valid ]] || ! compgen -G "$corpus/val.*" >/dev/null || set='val'
    for file in "$corpus/$set."{"$source","$target"}; do
      [[ -f $file || ! -f $file.gz ]] || file+=.gz
      echo "$file"
    done
  done
}

# derive: check the settings, and set the flags that follow from them.
derive() {
  local way file every most kept=$((average > 10 ? average : 10)) # with more checkpoints, --average can change without training again
  for way in ${direction//,/ }; do
    [[ $way =~ ^[A-Za-z]+(_[A-Za-z]+)?-[A-Za-z]+(_[A-Za-z]+)?$ ]] || fail "--direction $way: write two codes, such as en-de or en-pt_BR."
    [[ $corpus != wmt18 || $way =~ ^(en-(de|cs)|(de|cs)-en)$ ]] || fail "--direction $way: wmt18 has de-en and cs-en. Give a folder with your text as --corpus."
    [[ $corpus != @(wmt18|builtin) && -z $dry_run ]] || continue
    place "$way" && while read -r file; do
      [[ -f $file ]] || fail "--corpus $corpus: there is no $file (nor .gz). The folder has: $(cd "$corpus" && printf '%s ' *)"
    done < <(own_files)
  done
  every=$(flag save-interval-updates) most=$(flag max-epoch)
  [[ $most != 0 ]] || most='' # no limit
  keep=(--keep-last-epochs "$kept") averaged=(--num-epoch-checkpoints "$average")
  if [[ ${every:-0} != 0 ]]; then
    most=$(flag max-update) keep=(--no-epoch-checkpoints --keep-interval-updates "$kept")
    [[ -z $most ]] || most=$((most / every))
    averaged=(--num-update-checkpoints "$average" --every "$every")
  fi
  [[ -z $most ]] || ((most >= average)) || fail "--average $average: training saves only $most checkpoints. Save more often: --train.save-interval-updates N."
  ((average > 1)) || keep=(--no-epoch-checkpoints)
  joined=(--joined-dictionary) paper=(--paper DIET --table 'Table 4' --column ITEM --like table4-vaswani
    --same direction --same bounds --same bad-lines) # these do not change a score
  [[ $corpus != builtin ]] || paper=()
  [[ $dictionary == joint ]] || joined=()
  ((${#joined[@]})) || [[ " ${train[*]} " != *" --share-all-embeddings "* ]] ||
    fail "--dictionary separate: encoder and decoder cannot share embeddings. Add --train.share-all-embeddings false."
}
