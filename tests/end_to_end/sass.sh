#!/usr/bin/env bash
# The machine code (SASS, sm_90a) of every CUDA function that a training step of the record launches: no spills, no narrow
# stores of activations, the table docs/machine_code.csv. The functions are those that the step itself loads on the device
# "compile", so a new kernel is looked at without being listed. Needs NVRTC, and nvdisasm: of the CUDA toolkit or, as
# nvidia-cuda-nvdisasm, of the Python that MULLIGAN_TRITON_PYTHON names.
#
#   tests/end_to_end/sass.sh --write    write the table, too
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

python=${MULLIGAN_TRITON_PYTHON:-python3}
table=$root/docs/machine_code.csv
"$root/tests/sass/planted.py" "$python" || not_ok=$((not_ok + 1))

# One micro-step of 98,304 tokens, both phases.
if ! "$mulligan" profile "$root/configs/records/pr1886.toml" --predict --set backend.plugin=cuda --set backend.device=compile \
  --set backend.architecture=sm_90a --set backend.cache="$build/cuda_cache" --set backend.cubins="$work/cubins" \
  --set train.micro_batches=1 --set train.tokens_per_step=98304 >compile.out 2>compile.err; then
  if grep -q "built without CUDA\|NVRTC, CUDA's run-time compiler, was not" compile.err; then
    echo "skipped - the machine code of the record's step: $(cat compile.err)"
  else
    flunk "the record's step compiles" "$(cat compile.err)"
  fi
  finish
fi
pass "the record's step compiles: $(wc -l <"$work/cubins/functions.tsv") functions"
if [[ ${1:-} == --write ]]; then
  write=(--write "$table")
else
  write=()
fi
"$root/tests/sass/kernel_table.py" "$work/cubins" --python "$python" "${write[@]}" --table "$table" || not_ok=$((not_ok + 1))
