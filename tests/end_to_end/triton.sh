#!/usr/bin/env bash
# Kernels compiled by Triton in place of the cuda backend's own: what a run says of wrong rows and files; and, where
# python3 has triton, ours compiled ahead of time, assembled, checked, and computed in Triton's interpreter.
# MULLIGAN_TRITON_PYTHON names another Python.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

python=${MULLIGAN_TRITON_PYTHON:-python3}
skip() { echo "skipped - $1"; }
has() { "$python" -c "import $1" 2>/dev/null; }

tiny_data --validation-fraction 0.1
small_config "$work/data" >base.toml
# variant PATH: variant.toml with the loss's forward kernel replaced.
variant() {
  printf 'extends = "base.toml"\n[backend]\nplugin = "cuda"\ndevice = "emulated"\n' >variant.toml
  printf '[[backend.kernels]]\nmatch = "softcap_ce_fwd"\npath = "%s"\n' "$1" >>variant.toml
}
refused() { check_refused "$1" 2 "$2" train variant.toml --set run.directory=runs/refused --overwrite "${@:3}"; }

variant kernels/none.ptx
refused "a file that is not there" "kernels/none.ptx: the compiled kernel cannot be read"
refused "the sentence names the row" "variant.toml:5"
refused "an unknown kernel and its nearest name" "did you mean 'softcap_ce_fwd'" --set backend.kernels.0.match=softcap_ce_fwt
refused "a backend that takes no compiled kernels" "takes no compiled kernels" --set backend.plugin=cpu

if ! has triton; then
  skip "compilation by Triton, assembly and a run with the result: $python has no triton"
  finish
fi
export TRITON_CACHE_DIR=$work/triton_cache TRITON_DEFAULT_FP_FUSION=1
source=$root/plugins/losses/softcap_ce/triton/softcap_ce.py
compile() { "$python" "$root/plugins/backends/cuda/triton/compile_kernels.py" "$source" "$@"; }
check "softcap_ce compiles ahead of time, bf16" compile bf16 --set vocabulary=512
check "softcap_ce compiles ahead of time, fp32, any vocabulary" compile fp32 --set dtype=fp32
check_equal "the files name no path of this machine" "" "$(grep -l "$root\|$HOME" bf16/*.json bf16/*.ptx fp32/*.json)"

if command -v ptxas >/dev/null; then
  for file in bf16/*.ptx fp32/*.ptx; do
    check "ptxas assembles $file" ptxas -arch=sm_90a -v "$file" -o assembled.cubin
    check_contains "$file does not spill" "0 bytes spill stores, 0 bytes spill loads" \
      "$(ptxas -arch=sm_90a -v "$file" -o assembled.cubin 2>&1)"
  done
else
  skip "assembly of the PTX: no ptxas"
fi

# The MLP's matmuls with their activation, for the record's shape.
mlp=linear_leaky_relu_squared
compile_mlp() { "$python" "$root/plugins/backends/cuda/triton/compile_kernels.py" "$root/plugins/backends/cuda/triton/$mlp.py" "$@"; }
check "$mlp compiles ahead of time for sm_90a" compile_mlp mlp90 --set width=512 --set features=2048
check "$mlp compiles ahead of time for sm_80" compile_mlp mlp80 --architecture 80 --set programs=108 --set tile=128,128,32
check "$mlp compiles ahead of time for sm_100" compile_mlp mlp100 --architecture 100 --set stages=2
check_equal "its files name no path of this machine" "" "$(grep -l "$root\|$HOME" mlp*/*.json mlp*/*.ptx)"
check_equal "sm_90a: both kernels have the warpgroup's products and the copy engine's tiles" "2 2" \
  "$(grep -l wgmma.mma_async mlp90/*.ptx | wc -l) $(grep -l cp.async.bulk.tensor mlp90/*.ptx | wc -l)"
if command -v ptxas >/dev/null; then
  for file in mlp90/*.ptx mlp80/*.ptx; do
    architecture=sm_90a
    [[ $file == mlp80/* ]] && architecture=sm_80
    check_contains "$file does not spill" "0 bytes spill stores, 0 bytes spill loads" \
      "$(ptxas -arch=$architecture -v "$file" -o assembled.cubin 2>&1)"
  done
fi
# One width and number of features: the model of this test has others.
variant "mlp90/${mlp}_fwd.ptx"
sed -i "s/softcap_ce_fwd\"/${mlp}_fwd\"/" variant.toml
refused "$mlp for another width" "does not fit this call of ${mlp}_fwd" --set train.compute_dtype=bf16

variant fp32/softcap_ce_fwd.ptx
refused "a good file passes every check, and the emulated device says that it cannot run it" \
  "exists as GPU code only"
if has torch && has numpy; then
  "$python" "$root/tests/triton/softcap_ce_formula.py" || not_ok=$((not_ok + 1))
  "$python" "$root/tests/triton/${mlp}_formula.py" || not_ok=$((not_ok + 1))
else
  skip "the formula in Triton's interpreter: $python has no torch or numpy"
fi
