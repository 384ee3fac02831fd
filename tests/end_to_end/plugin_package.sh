#!/usr/bin/env bash
# The installed package: plugins/example is built against it outside of the tree, with a loss that has a kernel for the cpu
# and one for the cuda backend. Its gradients are checked on both, it trains on both, and what a plugin must not export or
# be called stops its build.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

prefix=$work/prefix
for component in runtime sdk; do
  check "cmake --install: $component" cmake --install "$build" --component "$component" --prefix "$prefix"
done
mulligan=$prefix/bin/mulligan
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
launcher=$(command -v ccache)

# build_plugins FOLDER: configures and builds FOLDER into FOLDER/build with nothing but the installed package.
build_plugins() {
  cmake -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" &&
    cmake --build "$1/build"
}

cp -r "$root/plugins/example" example
check "the examples build against the installed package" build_plugins example
listing=$("$mulligan" plugins z_loss --plugin-path example/build 2>&1)
for kernel in "z_loss_fwd on cpu" "z_loss_bwd on cpu" "z_loss_fwd on cuda" "z_loss_bwd on cuda"; do
  check_contains "z_loss brings $kernel" "$kernel" "$listing"
done

# A weight at which the penalty's share of the gradient is far above the tolerance.
z_loss=(plugins check z_loss --set weight=0.1)
emulated=(--backend cuda --set-backend device=emulated)
check "plugins check: z_loss on the cpu backend" "$mulligan" "${z_loss[@]}" --plugin-path example/build
check_contains "plugins check: z_loss on the emulated device" "ok    the gradient of the logits equals finite differences" \
  "$("$mulligan" "${z_loss[@]}" --plugin-path example/build "${emulated[@]}" 2>&1)"

check "plugins check: doc_matrix, a rule of test-time training" "$mulligan" plugins check doc_matrix --plugin-path example/build

# The same with a factor of the gradient's CUDA kernel wrong: the check finds it, and on that backend only.
cp -r "$root/plugins/example" wrong
sed -i 's/1.0f + 2.0f \* weight/1.0f + weight/' wrong/z_loss.cu
sed -i 's/false, true, 1.0);/false, true, 2.0);/' wrong/doc_matrix.cpp
check "a wrong CUDA kernel builds" build_plugins wrong
check_contains "plugins check: a rule that doubles the layer's output" "FAIL  gradients equal finite differences" \
  "$("$mulligan" plugins check doc_matrix --plugin-path wrong/build 2>&1)"
check "plugins check: it is right on the cpu backend" "$mulligan" "${z_loss[@]}" --plugin-path wrong/build
check_contains "plugins check: and wrong on the emulated device" "FAIL  the gradient of the logits equals finite differences" \
  "$("$mulligan" "${z_loss[@]}" --plugin-path wrong/build "${emulated[@]}" 2>&1)"

# A run with it on both backends.
tiny_corpus corpus
"$mulligan" prepare corpus --out data --vocab-size 384 --validation-documents 2 >/dev/null
{
  small_config "$work/data" | sed -e 's/^vocabulary = .*/vocabulary = 384/' -e 's/^steps = .*/steps = 3/' \
    -e 's/^tokens_per_step = .*/tokens_per_step = 256/' -e 's/^sequence_length = .*/sequence_length = 128/' \
    -e '/^packed_sequences/d' -e 's/^layers = .*/layers = 1/' -e '/^\[model.loop\]/,/^start_fraction/d' -e '/^\[model.lanes\]/,/^parallel_start/d'
  printf '[loss]\npath = "%s"\nweight = 0.01\n' "$work/example/build/mulligan_z_loss.so"
} >run.toml
for device in cpu emulated; do
  keys=()
  [[ $device == cpu ]] || keys=(--set backend.plugin=cuda --set backend.device=emulated)
  check "z_loss trains: $device" "$mulligan" train run.toml --set run.directory="runs/$device" "${keys[@]}"
done
cpu=$(json runs/cpu/result.json final_loss_nats)
cuda=$(json runs/emulated/result.json final_loss_nats)
check_true "both backends train to the same loss ($cpu, $cuda)" "($cpu - $cuda)^2 < (1e-4 * $cpu)^2 && $cpu > 1"

# What the build refuses.
# one_plugin FOLDER NAME LINE: a schedule plugin of the target NAME, whose export is LINE.
one_plugin() {
  mkdir -p "$1"
  cat >"$1/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(one LANGUAGES CXX)
find_package(mulligan REQUIRED)
mulligan_plugin($2 SOURCES one.cpp)
CMAKE
  cat >"$1/one.cpp" <<CPP
#include <mulligan/schedule.hpp>
__attribute__((visibility("default"))) int my_helper() { return 1; }
struct One final : mulligan::sdk::Schedule {
  static constexpr const char* summary = "constant";
  mulligan::sdk::Rate rate(const mulligan::sdk::Progress&, double lr) const override { return {lr, 0}; }
};
$3
CPP
}
one_plugin good one 'MULLIGAN_EXPORT_SCHEDULE(One, one);'
check "a plugin with a visible function of its own builds" build_plugins good
check_equal "and exports nothing but the plugin" "mlg_plugin" \
  "$(nm -D --defined-only good/build/mulligan_one.so | awk '{ print $3 }' | sort | tr '\n' ' ' | sed 's/ $//')"
one_plugin silent one ''
check_contains "a plugin without its macro is refused" "exports no plugin" "$(build_plugins silent 2>&1)"
"$compiler" -shared -fPIC -std=c++20 -fvisibility=hidden -I"$prefix/include" good/one.cpp -o leaking.so
check_contains "the check of exports names what is too much" "my_helper" \
  "$(cmake -DTASK=exports -DLIBRARY="$work/leaking.so" -DNAME=one -DNM=nm -P "$prefix/lib/cmake/mulligan/MulliganPlugin.cmake" 2>&1)"

# The SDK stands on nothing of the tree.
check_equal "the SDK includes nothing but itself and the standard library" "" \
  "$(grep -rhE '#include *["<](framework|kernels|tools|lab|plugins|optimizers|ttt|launch|boost|fmt)' "$root/include")"
