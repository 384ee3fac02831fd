// CPU kernels in C++: arguments are checked before the first launch, and exceptions become sentences.
//
//   struct Scale {
//     static constexpr const char* name = "my_scale";
//     static constexpr const char* signature = "in x, out y; factor";
//     enum Argument : std::uint32_t { x, y };      // in the order of the signature
//     enum Attribute : std::uint32_t { factor };
//     static void check(const CallChecks& call) { call.compute_dtype(x); call.like(y, x); }
//     static void run(const Launch& call) { ... call.parallel_for(call.size(x), 4096, ...); }
//   };
//   const mlg_kernel kernels[] = {cpu_kernel<Scale>()};
//
// check() runs once per recorded call and may throw and allocate; run() may do neither. workspace_bytes(call), if there is one,
// is the size of Launch::workspace() in run(). A template run<T>() is called with the compute dtype of the first argument. A
// kernel that prepares data for run() (tables, primitives) declares a State, whose workspace_bytes() is that size, and prepare(),
// which follows check():
//
//     struct State { ... };
//     static std::unique_ptr<State> prepare(const Launch& call);
//     static void run(const Launch& call) { ... call.state<State>() ... }
#pragma once

#include <mulligan/call_checks.hpp>

#include <memory>
#include <utility>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

namespace cpu_kernel_detail {

template <typename Kernel>
concept keeps_state = requires {
  typename Kernel::State;
};

template <typename Kernel>
constexpr auto release() -> void (*)(void*) {
  if constexpr (keeps_state<Kernel>) {
    return [](void* state) { delete static_cast<typename Kernel::State*>(state); };
  } else {
    return nullptr;
  }
}

template <typename Kernel>
mlg_error prepare(const mlg_launch* shapes, mlg_preparation* out) noexcept {
  return guarded([&] {
    CallChecks checks(Kernel::name, Kernel::signature, shapes);
    Kernel::check(std::as_const(checks));
    *out = {};
    if constexpr (keeps_state<Kernel>) {
      std::unique_ptr<typename Kernel::State> state = Kernel::prepare(std::as_const(checks));
      out->workspace_bytes = state->workspace_bytes();
      out->state = state.release();
    }
    if constexpr (requires { Kernel::workspace_bytes(checks); })
      out->workspace_bytes = Kernel::workspace_bytes(checks);
  });
}

template <typename Kernel>
mlg_error run(const mlg_launch* launch) noexcept {
  return guarded([&] {
    const Launch call(launch);
    if constexpr (requires { Kernel::run(call); }) {
      Kernel::run(call);
    } else {
      dispatch_compute(call.dtype(0), [&]<typename T>() { Kernel::template run<T>(call); });
    }
  });
}

}  // namespace cpu_kernel_detail

// The table entry of a kernel written as in the example above.
template <typename Kernel>
constexpr mlg_kernel cpu_kernel() {
  return {Kernel::name,
          "cpu",
          Kernel::signature,
          &cpu_kernel_detail::prepare<Kernel>,
          cpu_kernel_detail::release<Kernel>(),
          &cpu_kernel_detail::run<Kernel>,
          nullptr};
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
