#!/usr/bin/env bash
# What a position encoding does for text classifiers that are trained from scratch (Qu et al. 2021, Table 1).
# `recipes/text_classification/run.sh --help` lists the options; the settings, with their reasons, are in conf/.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" text_classification "$@"
