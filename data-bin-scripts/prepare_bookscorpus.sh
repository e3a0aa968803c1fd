#!/usr/bin/env bash
# Prepare shards from the user's own books.
set -euo pipefail
NAME=books
USAGE="prepare_bookscorpus.sh --text DIR --tokenizer NAME [OPTION...]

Prepare your own books. The authors of BooksCorpus (Zhu et al. 2015) no longer distribute it, so nothing is fetched.
Two alternatives exist:
- BookCorpusOpen (books1.tar.gz of The Pile, 2020) has 18,000 books from the same site, one text file per book. Its
  first host no longer offers it, and the licences of the books were never cleared.
- Project Gutenberg (gutenberg.org) has books that are free of copyright in the USA, in older English. PG-19 is a
  selection of its books from before 1919. Project Gutenberg and PG-19 can be downloaded in full.
DIR contains one text file per book, plain or compressed, also in subfolders. Each file is one document, and goes to the
validation set with a probability of 0.5 % (--valid-part).

  prepare_bookscorpus.sh --text books1/epubtxt --tokenizer wordpiece --vocabulary 30522 --tasks 16 --workers 8
  prepare_corpus.py --train file:books1/epubtxt \"\$(prepare_wikipedia.sh --text-only)\" --valid-part 0.005 \\
      --output data-bin/books_wiki --tokenizer wordpiece --vocabulary 30522
"
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
start "$@"
((${#text[@]})) || fail "BooksCorpus is no longer distributed. Give a folder of books with --text DIR; --help names alternatives."
has --documents "${rest[@]}" || text=("${text[@]/#/file:}")
prepare
