#!/usr/bin/env bash
# Compare how position encodings copy, count, add and retrieve, within and beyond the lengths of training.
# `recipes/length_tasks/run.sh --help` lists the options. The presets in conf/ hold the settings and their sources.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" length_tasks "$@"
