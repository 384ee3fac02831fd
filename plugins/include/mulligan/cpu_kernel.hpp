// Writing a CPU kernel in C++: argument checks before the first launch, exceptions turned into sentences.
//
//   struct Scale {
//     static constexpr const char* name = "my_scale";
//     static constexpr const char* signature = "in x, out y; factor";
//     static void check(CallChecks& call) { call.compute_dtype(0); call.like(1, 0); }
//     static void run(const Launch& call) { ... call.parallel_for(call.size(0), 4096, ...); }
//   };
//   const mlg_kernel kernels[] = {cpu_kernel<Scale>()};
//
// check() runs once per recorded call and may throw and allocate; run() may do neither.
#pragma once

#include <mulligan/call_checks.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

namespace cpu_kernel_detail {

template <typename Kernel>
mlg_error prepare(const mlg_launch* shapes, mlg_preparation* out) noexcept {
  return guarded([&] {
    CallChecks checks(Kernel::name, Kernel::signature, shapes);
    Kernel::check(checks);
    *out = {nullptr, checks.workspace_bytes()};
  });
}

template <typename Kernel>
mlg_error run(const mlg_launch* launch) noexcept {
  return guarded([&] { Kernel::run(Launch(launch)); });
}

}  // namespace cpu_kernel_detail

// The table entry of a kernel written as in the example above.
template <typename Kernel>
constexpr mlg_kernel cpu_kernel() {
  return {Kernel::name,      "cpu",
          Kernel::signature, &cpu_kernel_detail::prepare<Kernel>,
          nullptr,           &cpu_kernel_detail::run<Kernel>,
          nullptr,           nullptr};
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
