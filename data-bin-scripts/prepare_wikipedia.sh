#!/usr/bin/env bash
# Fetch a dump of the English Wikipedia, and prepare shards from it.
set -euo pipefail
NAME=wikipedia
USAGE="prepare_wikipedia.sh --tokenizer NAME [OPTION...]

Prepare the articles of the latest English dump (more than 20 GB compressed). Each document goes to the validation set
with a probability of 0.5 % (--valid-part). --text reads another dump (NAMEwiki-DATE-pages-articles.xml.bz2, with
--language) or the output of WikiExtractor.

  prepare_wikipedia.sh --tokenizer wordpiece --vocabulary 30522 --tasks 64 --workers 16
  prepare_wikipedia.sh --text dewiki.xml.bz2 --language de --tokenizer sentencepiece --output data-bin/dewiki
  prepare_wikipedia.sh --text-only
"
# shellcheck source=data-bin-scripts/corpora/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/corpora/prepare.sh"
start "$@"
fetch "$fetch_limit" wikipedia --no-unpack
prepare "$raw/wikipedia"
