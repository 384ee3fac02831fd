#!/usr/bin/env bash
# The core builds without tools and lab. It then trains, quantises, scores and launches, shows its own commands only, and
# links its unit tests, which `tests/run --long` runs once more: their objects are those of the whole build. Objects come from the
# compiler cache; without one this takes as long as a build, so it is left to the long form.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

if ! command -v ccache >/dev/null && [[ ${MULLIGAN_LONG_TESTS:-} != 1 ]]; then
  echo "skipped - the core alone: there is no ccache, and this is not a long test"
  exit 0
fi

tiny_corpus corpus
"$mulligan" prepare corpus --out data --vocab-size 384 --validation-fraction 0.1 >/dev/null
small_config "$work/data" | sed -e 's/^vocabulary = .*/vocabulary = 384/' -e 's/^steps = .*/steps = 12/' >tiny.toml
cat >>tiny.toml <<'END'
[quantize]
plugin = "gptq"
calibration_batches = 2
calibration_rows = 2
[[quantize.tensors]]
match = "*"
format = "fp16"
END
"$mulligan" train tiny.toml --quiet --set run.directory=whole --set doctor.level=off >/dev/null

alone=$(dirname "$build")/core_alone  # as deep as the other build: relative paths in it are the same for the cache
rm -f "$alone/CMakeCache.txt"                # a run before this one ended with other settings
configured() {
  cmake -S "$root" -B "$alone" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMULLIGAN_TOOLS=OFF -DMULLIGAN_LAB=OFF
}
check "the core alone is configured" configured
built() { # the end of what was said is enough
  cmake --build "$alone" --target "$@" >built.log 2>&1 || {
    tail -30 built.log
    return 1
  }
}
check "the core alone is built, with its unit tests" built mulligan mulligan_unit_tests
core=$alone/bin/mulligan
shown=$("$core" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p' | grep -v '^-' | xargs)
check_equal "its help shows the core's commands only" \
  "train launch eval quantize ttt generate plugins checkpoint completion" "$shown"
check_contains "a command of the tools is said to be left out" "it is of the tools, without which this program was built (MULLIGAN_TOOLS=OFF)" \
  "$("$core" report alone 2>&1)"
check_contains "and one of the lab" "(MULLIGAN_LAB=OFF)" "$("$core" probe logits alone 2>&1)"
check "it trains" "$core" train tiny.toml --quiet --set run.directory=alone
same() { cmp <(tail -c 4096 "$1") <(tail -c 4096 "$2"); }
check "to the weights of the whole program" same whole/weights.safetensors alone/weights.safetensors
check "it quantises" "$core" quantize alone
check "it scores" "$core" eval alone
check "it launches two ranks" "$core" launch --standalone --nproc-per-node 2 -- train tiny.toml --quiet --set run.directory=two \
  --set train.micro_batches=2
unit_tests=(--gtest_brief=1)
[[ ${MULLIGAN_LONG_TESTS:-} == 1 ]] || unit_tests+=("--gtest_filter=Plugin*:Schema*:-Plugins/*")
check "its unit tests pass" "$alone/bin/mulligan_unit_tests" "${unit_tests[@]}"

# As the quickstart builds: without the cuda backend.
fewer=(cmake "$alone" -DMULLIGAN_CUDA_BACKEND=OFF -DMULLIGAN_BUILD_TESTS=OFF)
check_contains "tests without it are refused" "MULLIGAN_BUILD_TESTS=OFF too" "$("${fewer[@]}" -DMULLIGAN_BUILD_TESTS=ON 2>&1)"
check "it is configured without the cuda backend" "${fewer[@]}"
rm -r "$alone/lib/mulligan/plugins" # those of the build before
check "and built" built mulligan
check_equal "what was left out is not there" "" "$("$core" plugins | grep -E " cuda ")"
how="since this build was made without it: configure it with \`cmake --preset release\` and build again."
check_equal "and said to be left out, with how to get it" "mulligan: there is no backend plugin 'cuda', $how" \
  "$("$core" train tiny.toml --set backend.plugin=cuda --set run.directory=cuda 2>&1)"
check_equal "also where it is asked for by name" "mulligan: there is no plugin 'cuda', $how" "$("$core" plugins cuda 2>&1)"
check "the rest trains" "$core" train tiny.toml --quiet --set run.directory=without
