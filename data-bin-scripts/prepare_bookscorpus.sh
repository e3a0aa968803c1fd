#!/usr/bin/env bash
# Prepare shards from the user's own books.
set -euo pipefail
NAME=books
USAGE="prepare_bookscorpus.sh --text FOLDER --tokenizer NAME [OPTION...]

BooksCorpus (Zhu et al. 2015) is no longer distributed by its authors, and nothing is fetched here. What there is:
- BookCorpusOpen (books1.tar.gz of The Pile, 2020): 18,000 books collected anew from the same site, a text file each.
  Its first host has taken it down; copies come and go, and the books' own licences were never cleared.
- Project Gutenberg (gutenberg.org): books that are free of copyright in the USA; PG-19 is a selection of them from
  before 1919. Older English, and to be had in full.
FOLDER holds a text file a book, plain or packed, at any depth; each file is one document. Each book is held out for
validation with a chance of 0.5 % (--valid-part).

  prepare_bookscorpus.sh --text books1/epubtxt --tokenizer wordpiece --vocabulary 30522 --tasks 16 --workers 8
  prepare_corpus.py --train file:books1/epubtxt \"\$(prepare_wikipedia.sh --text-only)\" --valid-part 0.005 \\
      --output data-bin/books_wiki --tokenizer wordpiece --vocabulary 30522
"
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
start "$@"
((${#text[@]})) || fail "BooksCorpus is no longer distributed: give a folder of books with --text FOLDER (--help names some)"
has --documents "${rest[@]}" || text=("${text[@]/#/file:}")
prepare
