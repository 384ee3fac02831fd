// How a kernel of the cpu backend is written and registered.
//
//   void check(Checker& check) { check.rank(0, 1, 4); check.same_shape(1, 0); ... check.workspace(bytes); }
//   void run(const Launch& launch) { launch.parallel_for(...); }
//   MULLIGAN_CPU_KERNEL(rms_norm_fwd, "in x, out y; scale eps", check, run)
//
// at namespace scope of a source file that CMakeLists.txt lists. `check` runs once per call site, before the
// first launch; it may allocate and throw. `run` may do neither.
#pragma once

#include <mulligan/cpu_kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace mulligan::cpu {

using sdk::bfloat16;
using sdk::dispatch_compute;
using sdk::Launch;

// Base of what a kernel keeps from check() to run(): primitives, tables.
struct KernelState {
  virtual ~KernelState() = default;
};

// The state that check() handed to Checker::state; T must be that type.
template <typename T>
T& state_of(const Launch& launch) {
  return static_cast<T&>(*launch.state<KernelState>());
}

// Argument checks of one call, and what the kernel keeps for run().
class Checker : public sdk::CallChecks {
 public:
  using CallChecks::CallChecks;

  void state(std::unique_ptr<KernelState> state) { state_ = std::move(state); }
  std::unique_ptr<KernelState> take_state() { return std::move(state_); }

 private:
  std::unique_ptr<KernelState> state_;
};

// ---- reductions over rows whose result does not depend on the number of threads ----

// [0, rows) cut into at most 64 pieces of equal length (the last may be shorter); a function of `rows` only.
struct Pieces {
  explicit Pieces(std::int64_t rows)
      : rows(rows),
        length(std::max<std::int64_t>(32, (rows + 63) / 64)),
        count((rows + length - 1) / length) {}
  std::int64_t begin(std::int64_t piece) const { return piece * length; }
  std::int64_t end(std::int64_t piece) const { return std::min(rows, (piece + 1) * length); }

  std::int64_t rows, length, count;
};

// Bytes of workspace for add_row_sums.
inline std::size_t row_sums_bytes(std::int64_t rows, std::int64_t width) {
  return static_cast<std::size_t>(Pieces(rows).count * width) * sizeof(float);
}

// out[width] += sum over rows. body(partial, begin, end) adds the rows [begin, end), in order, to
// partial[width], which starts at zero; the partial sums are then added to `out` in order of the pieces.
// While it has a piece the body may also compute what belongs to its rows alone. `workspace`:
// row_sums_bytes(rows, width), 64-byte aligned. Without `out` (null) nothing is summed: the body gets a null
// partial and only does its rows' own work.
template <typename Body>
void add_row_sums(const Launch& launch, std::int64_t rows, std::int64_t width, float* workspace, float* out,
                  Body&& body) {
  const Pieces pieces(rows);
  if (!out) {
    launch.parallel_for(rows, pieces.length,
                        [&](std::int64_t begin, std::int64_t end) { body(nullptr, begin, end); });
    return;
  }
  launch.parallel_for(pieces.count, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t piece = first; piece < last; ++piece) {
      float* partial = workspace + piece * width;
      std::fill_n(partial, width, 0.0f);
      body(partial, pieces.begin(piece), pieces.end(piece));
    }
  });
  launch.parallel_for(width, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
      const float* partial = workspace + piece * width;
      for (std::int64_t j = begin; j < end; ++j) out[j] += partial[j];
    }
  });
}

// ---- registration ----

// The kernels registered by this library, in no particular order.
std::vector<mlg_kernel>& registered_kernels();

struct Registrar {
  explicit Registrar(const mlg_kernel& kernel) { registered_kernels().push_back(kernel); }
};

// Entry points behind the C table: exceptions become sentences.
mlg_error guarded_prepare(const char* kernel, const char* signature, void (*check)(Checker&),
                          const mlg_launch* shapes, mlg_preparation* out);
mlg_error guarded_run(void (*run)(const Launch&), const mlg_launch* launch);
void release_state(void* state);

#define MULLIGAN_CPU_KERNEL(kernel_name, signature, check_function, run_function)                \
  static mlg_error kernel_name##_entry_prepare(const mlg_launch* shapes, mlg_preparation* out) { \
    const auto checks = [](::mulligan::cpu::Checker& checker) { check_function(checker); };      \
    return ::mulligan::cpu::guarded_prepare(#kernel_name, signature, checks, shapes, out);       \
  }                                                                                              \
  static mlg_error kernel_name##_entry_run(const mlg_launch* launch) {                           \
    return ::mulligan::cpu::guarded_run(run_function, launch);                                   \
  }                                                                                              \
  static const ::mulligan::cpu::Registrar kernel_name##_registrar{                               \
      mlg_kernel{#kernel_name, "cpu", signature, kernel_name##_entry_prepare,                    \
                 ::mulligan::cpu::release_state, kernel_name##_entry_run, nullptr, nullptr}};

}  // namespace mulligan::cpu
