#!/usr/bin/env bash
# The record's pipeline in small on the cuda backend's GPU device, without a GPU. Stubs of NVIDIA's driver, NVRTC, cuBLASLt,
# cuDNN and NCCL judge each call and compute, and the kernels run on the CPU (tests/gpu_pipeline). The pipeline trains in both
# layer orders, writes a checkpoint, resumes, quantises and runs test-time training with lanes, on one rank and on two. Its
# results are compared with the cpu backend's. No stub may find anything wrong; a misuse that is planted in the path to each
# must end the run.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
source "$root/tests/multiprocess/small_record.bash"
plugin=$build/tests/gpu_pipeline/plugins/mulligan_cuda.so
[[ -e $plugin ]] || {
  echo "skipped - the record's pipeline over stubs: it is built where the headers of CUDA and cuDNN are"
  exit 0
}
make_subject
# Two documents are enough for a score.
"$mulligan" prepare text --out data --vocab-size 300 --validation-documents 2 --overwrite >/dev/null || exit 1

small_record >record.toml
# In place of a user's folders, where what stands in for compiled kernels must not come.
gpu=(--set backend.plugin=cuda --set backend.path="$plugin" --set backend.cache="$work/cache")
over_nccl=("${gpu[@]}" --set communicator.plugin=nccl)
# Where the dynamic linker finds NCCL; the folder that it lies in has a driver for other tests as well.
mkdir nccl && ln -s "$build/tests/stub/libnccl.so.2" nccl/ && export LD_LIBRARY_PATH=$work/nccl

by_ranks() { run_ranks by "$@"; } # by_ranks SIZE COMMAND ARGUMENT...: output of rank R in by.R
# judged LIBRARY: calls in the processes of the report. wrong: what was found wrong in them.
judged() { awk -F '\t' -v library="$1" '$1 == library { sum += $2 } END { print sum + 0 }' "$MULLIGAN_STUB_REPORT"; }
wrong() { awk -F '\t' '$3 != "-" { print $1 ": " $3 }' "$MULLIGAN_STUB_REPORT"; }
# check_judges WHAT LIBRARY...: they were asked in that report, and nothing was wrong.
check_judges() {
  local what=$1 library
  shift
  for library in "$@"; do check_true "$what: calls of $library were judged, $(judged "$library")" "$(judged "$library") > 0"; done
  check_equal "$what: none was wrong" "" "$(wrong)"
}
# check_losses WHAT RUN CPU: in bf16, whose sums the backends round in another order.
check_losses() {
  check_equal "$1: all steps" "$(losses "$3" | wc -l)" "$(losses "$2" | wc -l)"
  check_true "$1: the cpu backend's losses" "$(losses "$2" | wc -l) > 0 && $(largest_difference "$2" "$3") <= 2e-2"
  check_true "$1: and its score" "sqrt(($(score "$2") - $(score "$3"))^2) <= 2e-2"
}
# resume_from RUN STEP: a run directory RUN_resumed with nothing in it but that checkpoint.
resume_from() {
  mkdir -p "$1_resumed/checkpoints"
  cp -r "$1/checkpoints/step_$(printf %08d "$2")" "$1_resumed/checkpoints/"
}
# made FILE WHAT WHEN: how many the device has made; the report has the counts, too.
made() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["made_on_device"][sys.argv[2]][sys.argv[3]])' "$@"; }
ttt_bpb() { python3 -c 'import json, sys; print(repr(json.load(open(sys.argv[1] + "/ttt_result.json"))["with_ttt"]["val_bpb"]))' "$1"; }

for size in 1 2; do
  export MULLIGAN_STUB_REPORT=$work/report_$size
  options=("${gpu[@]}")
  libraries=(driver cublaslt cudnn)
  ((size == 1)) || { options=("${over_nccl[@]}") libraries+=(nccl); }
  run=run_$size
  check "cpu, $size: trains" by_ranks "$size" train record.toml --set run.directory="cpu_$size"
  check "$size: trains in both layer orders" by_ranks "$size" train record.toml --set run.directory="$run" "${options[@]}"
  check_losses "$size" "$run" "cpu_$size"
  check_true "$size: plans of attention before the training clock" "$(made "$run/result.json" attention_plans before_clock) >= 2 * $size"
  for what in attention_plans kernel_modules kernels_compiled products_measured; do
    check_equal "$size: $what that were made on the clock" 0 "$(made "$run/result.json" $what on_clock)"
  done
  check_contains "$size: the report has the counts" "attention plans $(made "$run/result.json" attention_plans before_clock) + 0 +" "$(cat "$run/report.html")"
  resume_from "$run" 2
  check "$size: goes on from a checkpoint" by_ranks "$size" train record.toml --set run.directory="${run}_resumed" "${options[@]}" --resume
  check_equal "$size: to the same weights, to the bit" "$(weights "$run")" "$(weights "${run}_resumed")"
  check_judges "$size, training" "${libraries[@]}"
done

export MULLIGAN_STUB_REPORT=$work/report_quantize
check "quantizes" by_ranks 1 quantize run_1 --output artifact.mulligan "${gpu[@]}"
check_judges "quantisation" driver cublaslt cudnn

check "cpu: test-time training" "$mulligan" ttt artifact.mulligan --output ttt_cpu --set backend.plugin=cpu
for size in 1 2; do
  export MULLIGAN_STUB_REPORT=$work/report_ttt_$size
  options=("${gpu[@]}")
  libraries=(driver cublaslt cudnn)
  ((size == 1)) || { options=("${over_nccl[@]}"); }
  check "$size: test-time training in two lanes" by_ranks "$size" ttt artifact.mulligan --output "ttt_$size" "${options[@]}"
  check_true "$size: modules for it" "$(made "ttt_$size/ttt_result.json" kernel_modules before_clock) > 0"
  check_true "$size: the cpu backend's score" "sqrt(($(ttt_bpb "ttt_$size") - $(ttt_bpb ttt_cpu))^2) <= 2e-2"
  check_judges "$size, test-time training" "${libraries[@]}"
done
# A card that holds the weights and the 32 MiB in which cuBLASLt's algorithms are measured, but not the plan, of 36 MB. The record's
# plan is compared with 80 GB (dry_run_test.cpp).
export MULLIGAN_STUB_REPORT=$work/report_card MULLIGAN_STUB_CARD="$work/card 34600000"
check_equal "a card that is too small is refused" no "$(by_ranks 1 ttt artifact.mulligan --output ttt_small "${gpu[@]}" >/dev/null && echo yes || echo no)"
check_contains "with what is needed and what there is" "test-time training needs 0.0 GB of memory" "$(cat by.0)"
check_judges "a card that is too small" driver
unset MULLIGAN_STUB_CARD
check_equal "two ranks have the score of one" "$(ttt_bpb ttt_1)" "$(ttt_bpb ttt_2)"

# planted LIBRARY CALL RANK SIZE ARGUMENT TEXT: that call of the library is spoilt. The run fails, and the judge said why.
planted() {
  export MULLIGAN_STUB_REPORT=$work/report_planted_$1 MULLIGAN_STUB_PLANT="$1 $2 $3"
  local options=("${gpu[@]}")
  (($4 == 1)) || options=("${over_nccl[@]}")
  check_equal "planted in $1: the run fails" no \
    "$(by_ranks "$4" train record.toml --set run.directory="planted_$1" --set train.warmup.steps=0 "${options[@]}" >/dev/null && echo yes || echo no)"
  check_contains "planted in $1: the call" "$5" "$(wrong)"
  check_contains "planted in $1: and what is wrong with it" "$6" "$(wrong)"
  unset MULLIGAN_STUB_PLANT
}
planted driver 300 0 1 "cuLaunchKernel of" "where nothing was allocated"
planted cublaslt 40 0 1 "cublasLtMatmul" "was neither proposed nor checked for this matmul"
planted cudnn 8 0 1 "cudnnBackendExecute" "is not aligned to 16 bytes"
planted nccl 3 1 2 "nccl" "argument count"
