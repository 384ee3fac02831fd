#!/usr/bin/env bash
# mulligan plugins kernels: a configuration's CUDA kernels compiled ahead of time into one file. Needs NVRTC, no GPU and no driver.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

small_config /nowhere >small.toml
compile() { "$mulligan" plugins kernels small.toml --set "backend.cache='$work/cache'" "$@"; }
holds() { grep -aq "$2" "$1"; }

echo "of an earlier day" >kept.kernels
check_refused "a refused command" 2 "unknown key" plugins kernels small.toml --out kept.kernels --set train.stepz=3
check_equal "leaves the file that was there" "of an earlier day" "$(cat kept.kernels)"
if ! seen=$(compile --out all.kernels 2>&1); then
  if grep -q "NVRTC, CUDA's run-time compiler, was not found\|was built without CUDA" <<<"$seen"; then
    echo "skipped - kernels compiled ahead of time: no NVRTC"
  else
    flunk "compiles" "$seen"
  fi
  finish
fi
check_contains "it says what it made" "all.kernels: $(stat -c %s all.kernels) bytes" "$seen"
check "the backend's kernels are in it" holds all.kernels residual_mix_norm
check "and those of the loss" holds all.kernels softcap_ce
check "and those of the optimisers" holds all.kernels muon
compile --out again.kernels >again.log 2>&1
check "the same configuration gives the same file" cmp all.kernels again.kernels
check_equal "nothing temporary is left" "" "$(ls | grep '\.tmp\.')"
compile --out other.kernels --architecture sm_80 >other.log 2>&1
check "another architecture gives another file" holds other.kernels sm_80
