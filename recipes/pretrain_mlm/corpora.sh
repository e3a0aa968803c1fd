# shellcheck shell=bash disable=SC2034,SC2154
# What the known corpora and tokenizers consist of. run.sh calls these functions; they set `text` (the words of
# prepare_corpus.py for the text), `data` and `shards` (the prepared corpus) and `prepare` (further words).
text=() valid=() data=$output/data

fetch() { step "fetch:$1" - python "$ROOT/data-bin-scripts/fetch.py" "$@" --output "$raw"; }

# text_of CORPUS: fetch or write the text of known names joined by commas, or find the files of a folder.
text_of() {
  local name most
  for name in ${1//,/ }; do
    case $name in
      builtin)
        step text "$output/text" python -m recipes.lib.invented.texts documents --seed 1 --output "$output/text"
        text+=("$output/text/train.txt") valid+=("$output/text/valid.txt") ;;
      books_wiki)
        need books "give a folder with one file for each book." # each file is a document
        reads "$books" && fetch wikipedia --no-unpack && text+=("$raw/wikipedia" "file:$books") ;;
      openwebtext) fetch openwebtext && text+=("$raw/openwebtext") ;;
      c4_en)
        fetch c4 --no-unpack && text+=("$raw/c4/c4-train.*")
        [[ $1 != c4_en ]] || valid=("$raw/c4/c4-validation.*") ;;
      wiki100)
        need languages "give a folder with a folder of Wikipedia's text or dump for each language."
        reads "$languages" && text+=("$languages") prepare=(--languages "${prepare[@]}") ;;
      *)
        text+=("$name"/train.*) valid+=("$name"/valid.*) && reads "${text[@]}" "${valid[@]}"
        most=$(($(stat -Lc %s "${text[@]}" | paste -sd +) >> 20)) most=$((most < 20 ? 1 : most / 10))
        ((shards <= most)) || { say "--shards $shards is lowered to $most, because a shard needs at least 10 MiB." && shards=$most; } ;;
    esac
  done
  ((${#valid[@]} == 0)) && prepare=(--valid-part 0.005 "${prepare[@]}") || text+=(--valid "${valid[@]}")
}

# tokenizer_of TOKENIZER: fetch it, or take that of the pretrained BERT; otherwise it is learned from the text.
tokenizer_of() {
  case $1:$tokenizer_path in
    gpt2: | gpt2:published) fetch gpt2-bpe && tokenizer_path=$raw/gpt2-bpe ;;
    wordpiece:published) fetch bert-vocab && tokenizer_path=$raw/bert-vocab/bert-base-uncased-vocab.txt ;;
    wordpiece:) tokenizer_path=${init_from:+$init_from/vocab.txt} ;;
    *:published) fail "--tokenizer-path published: there is no published $1 model. Leave the option out." ;;
    sentencepiece:) [[ -z $init_from ]] || fail "--init-from $init_from: give the files of its tokenizer as --tokenizer-path." ;;
  esac
  [[ -n $tokenizer_path ]] && prepare+=(--tokenizer-path "$tokenizer_path") || prepare+=(--vocabulary "$vocabulary")
}

# prepared FOLDER: use a corpus that prepare_corpus.py wrote.
prepared() {
  local longest && longest=$(grep -m 1 -oP '"longest": \K\d+' "$1/corpus.json")
  ((longest <= length - 2)) || fail "--length $length: sentences in $1 may have $longest pieces plus <s> and </s>. Give --length $((longest + 2)) or more, or prepare the text again."
  reads "$1/corpus.json" && data=$1 shards=$(find "$1" -maxdepth 1 -name 'shard*' | wc -l)
}
