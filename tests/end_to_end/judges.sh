#!/usr/bin/env bash
# The cross-checks that need only small packages: safetensors, sentencepiece and tensorboard, where MULLIGAN_JUDGES_PYTHON (default: the
# environment of tests/judges/run) has them. docs/cross_checks.csv is not written.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
python=${MULLIGAN_JUDGES_PYTHON:-$build/judges/environment/bin/python}
for judge in safetensors sentencepiece tensorboard; do
  if ! "$python" -c "import numpy, $judge" 2>/dev/null; then
    echo "skipped - judge $judge (its package is not installed; tests/judges/run installs it)"
    continue
  fi
  seen=$(MULLIGAN_JUDGES_INSIDE=1 MULLIGAN_BUILD=$build "$python" "$root/tests/judges/run" --print "$judge" 2>&1)
  if (($? == 0)); then pass "judge $judge: $(grep -c '^within' <<<"$seen") figures within their bounds"; else flunk "judge $judge" "$seen"; fi
done
check "the judges are listed" "${MULLIGAN_PYTHON:-python3}" "$root/tests/judges/run" --list
