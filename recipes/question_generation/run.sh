#!/usr/bin/env bash
# Train question generation with a copying decoder and any position encoding, and compare the encodings.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh" question_generation "$@"
