#!/usr/bin/env bash
# Test the core with the oldest and the newest version of torch, or with the versions that are given:
#   tests/versions.sh [VERSION...]
# Each version gets a temporary environment with torch, the packages of the core and of the metrics, and the tools of
# the tests, but without fairseq. A wheel of torch for GPUs takes about 6 GB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages="numpy scipy safetensors tabulate sacrebleu rapidfuzz scikit-learn setuptools pytest hypothesis
  pytest-timeout pytest-xdist"
core="tests/test_positions.py tests/core tests/ops tests/attention tests/encodings tests/laws tests/metrics"
# What torch 2.5 cannot do: one graph of a layer, the compiled formula and its choices of loops, torch.export, and
# torch.func.grad of an encoding that reads numbers of its tables. A loop that it compiles with -ffast-math makes the
# process round subnormal numbers to 0, which test_options.py needs, so that file runs alone.
new="--ignore tests/laws/test_graphs.py --ignore tests/laws/test_compiled.py --ignore tests/laws/test_options.py
  --ignore tests/attention/test_rows.py"
names='not compile and not export and not limit_of_the_process and not (each_sample and (deberta or tupe))'

(($#)) || set -- 2.5.0 2.15.0
for version in "$@"; do
  environment=$(mktemp -d)
  trap 'rm -rf "$environment"' EXIT
  python -m venv "$environment"
  # shellcheck disable=SC2086  # lists of words
  "$environment/bin/pip" install --quiet "torch==$version" $packages
  # shellcheck disable=SC2086
  if [[ $version == 2.5.* ]]; then
    "$environment/bin/python" -m pytest -n 2 --timeout 1200 $core $new -k "$names"
    "$environment/bin/python" -m pytest -n 2 --timeout 1200 tests/laws/test_options.py
  else
    "$environment/bin/python" -m pytest -n 2 --timeout 1200 $core
  fi
  rm -rf "$environment"
done
