#!/usr/bin/env bash
# Trains question generation with a copying decoder, with any position encoding in it, and compares them.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" question_generation "$@"
