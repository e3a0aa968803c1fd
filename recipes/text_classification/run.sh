#!/usr/bin/env bash
# Compare position encodings of text classifiers that are trained from scratch (Qu et al. 2021, Table 1).
# `recipes/text_classification/run.sh --help` lists the options. The presets in conf/ hold the settings and their sources.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" text_classification "$@"
