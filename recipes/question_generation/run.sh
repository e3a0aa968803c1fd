#!/usr/bin/env bash
# Train models that generate a question from an answer and its context, as in Tables 2 and 6 of Qu et al. 2021 (LFHC and
# GCDF). The encoder is pretrained, or learns from scratch; the decoder can copy words and uses any position encoding.
#   recipes/question_generation/run.sh --preset small --corpus DIR --pos-enc 'xl,gcdf,shaw[clip=8,share=none]' --copy both
#   recipes/question_generation/run.sh --preset paper --encoder bert-base-cased --pos-enc xl,gcdf
source "$(dirname "$0")/../lib/recipe.sh"

preset=small              # settings in conf/NAME.sh
corpus=builtin            # builtin (invented), squad or cmrc (downloaded), a folder with {train,valid,test}.json or src-*.txt and tgt-*.txt, a file in SQuAD's format (split by article), or a folder of prepare_questions.py [builtin|squad|cmrc|PATH]
sets=''                   # names of the training, the validation and maybe the test file in your folder: TRAIN,VALID[,TEST]
raw=data/raw              # folder for downloads
limit=0                   # training questions to use; 0: all [int 0..]
limit_valid=0             # validation and test questions to use; 0: all [int 0..]
bad=refuse                # bad questions: stop with a list, leave them out, or repair misplaced answers and cut long ones [refuse|skip|repair]
context=paragraph         # text that the model reads with the answer [paragraph|sentence]
length=512                # pieces of a source; longer contexts are cut around the answer [int 5..]
longest_answer=100        # pieces of an answer [int 1..]
longest_question=50       # pieces of a question [int 1..]
encoder=scratch           # Hugging Face folder of a BERT or RoBERTa, whose tokenizer is used, too; or scratch [scratch|DIR]
freeze_encoder=no         # keep the pretrained encoder and the embedding fixed [yes|no]
tokenizer=auto            # pieces for --encoder scratch; auto: characters for Chinese, otherwise words [auto|words|chars]
cased=no                  # keep capital letters, for --encoder scratch [yes|no]
vocabulary=20000          # pieces in the dictionary, for --encoder scratch [int 5..]
copy=on                   # models that can copy words of the source, models that cannot, or both [on|off|both]
split=valid               # split for which questions are generated [valid|test]
arch=posenc_question_generation # architecture of fairseq-train
workers=1                 # processes that prepare the questions [int 1..]
options "$@"

data=$output/data-bin answers=(--context "$context" --longest-answer "$longest_answer")
case $corpus in
  builtin) questions=(--corpus "$output/builtin")
    step builtin "$output/builtin" python -m recipes.lib.invented.questions --seed 1 --output "$output/builtin" ;;
  squad) set -- squad/{train,dev}-v1.1.json ;;
  cmrc) set -- cmrc2018/cmrc2018_{train,dev,trial}.json ;;
  *) mapfile -t files < <(find -L "$corpus" -maxdepth 1 -type f | sort) && reads "${files[@]}" && questions=(--corpus "$corpus")
    [[ ! -f $corpus/questions.json ]] || data=$corpus
    [[ ${sets:-$(cd "$corpus" && compgen -G 'src-*')} != src-* ]] || answers=() # sentences have no answers
    [[ -z $sets ]] || raw=$corpus && IFS=, read -ra files <<<"$sets" && set -- "${files[@]}" ;;
esac
