# shellcheck shell=bash disable=SC2034,SC2154
# What the known corpora and tokenizers consist of. run.sh reads this file after its settings: the first lines refuse
# what is missing, and the functions set `text` and `prepare` (words of prepare_corpus.py), `data` and `shards`.
text=() valid=() data=$output/data

# need SETTING ADVICE: stop if a setting has no value; a dry run shows its name instead.
need() { [[ -n ${!1} ]] || { [[ -n $dry_run ]] || fail "--${1//_/-} is missing: $2" && printf -v "$1" %s "${1^^}"; }; }
[[ -z $init_from ]] || reads "$init_from"
[[ -z $tokenizer_path ]] || no_effect "--tokenizer-path names the tokenizer" vocabulary
[[ -z $init_model ]] || need init_from "this preset starts from $init_model. Give its folder or checkpoint."
[[ ,$corpus, != *,books_wiki,* ]] || need books "--corpus $corpus needs a folder with one file for each book."
[[ ,$corpus, != *,wiki100,* ]] || need languages "--corpus wiki100 needs a folder with a folder of Wikipedia's text or dump for each language."
[[ -f $corpus/corpus.json ]] || case $tokenizer:$tokenizer_path:$init_from in
  sentencepiece:published:*) fail "--tokenizer-path published: there is no published SentencePiece model. Leave the option out." ;;
  sentencepiece::?*) fail "--init-from $init_from: the text needs the tokenizer of this model. Give --tokenizer and --tokenizer-path." ;;
esac
[[ ! -d $corpus || -f $corpus/corpus.json ]] || { compgen -G "$corpus/train.*" && compgen -G "$corpus/valid.*"; } >/dev/null ||
  fail "--corpus $corpus: the folder must have train.* and valid.*, or be one that prepare_corpus.py wrote."

fetch() { step "fetch:$1" - python "$ROOT/data-bin-scripts/fetch.py" "$@" --output "$raw"; }

# text_of CORPUS: fetch or write the text of known names joined by commas, or find the files of a folder.
text_of() {
  local name most
  for name in ${1//,/ }; do
    case $name in
      builtin)
        step text "$output/text" python -m recipes.lib.invented.texts documents --seed 1 --output "$output/text"
        text+=("$output/text/train.txt") valid+=("$output/text/valid.txt") ;;
      books_wiki) # each file of --books is a document
        reads "$books" && fetch wikipedia --no-unpack && text+=("$raw/wikipedia" "file:$books") ;;
      openwebtext) fetch openwebtext && text+=("$raw/openwebtext") ;;
      c4_en)
        fetch c4 --no-unpack && text+=("$raw/c4/c4-train.*")
        [[ $1 != c4_en ]] || valid=("$raw/c4/c4-validation.*") ;;
      wiki100) reads "$languages" && text+=("$languages") prepare=(--languages "${prepare[@]}") ;;
      *)
        text+=("$name"/train.*) valid+=("$name"/valid.*) && reads "${text[@]}" "${valid[@]}"
        most=$((($(stat -Lc %s "${text[@]}" | paste -sd +)) / (10 << 20))) && ((most)) || most=1
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
    *:?*) reads "$tokenizer_path" ;;
  esac
  [[ -n $tokenizer_path ]] && prepare+=(--tokenizer-path "$tokenizer_path") || prepare+=(--vocabulary "$vocabulary")
}

# prepared FOLDER: use a corpus that prepare_corpus.py wrote.
prepared() {
  no_effect "$1 is prepared already" tokenizer tokenizer_path vocabulary shards
  local longest && longest=$(grep -m 1 -oP '"longest": \K\d+' "$1/corpus.json")
  tokenizer=$(grep -m 1 -oP '"tokenizer": "\K\w+' "$1/corpus.json")
  ((longest <= length - 2)) || fail "--length $length: sentences in $1 may have $longest pieces plus <s> and </s>. Give --length $((longest + 2)) or more, or prepare the text again."
  reads "$1/corpus.json" && data=$1 shards=$(find "$1" -maxdepth 1 -name 'shard*' | wc -l)
}
