// Host side of cross_entropy.cuh.
#pragma once

#include <mulligan/cuda/row_plan.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Declares the constants for logits of `columns` columns and calls body.template operator()<T, N>(threads of
// a block). cap 0: none. `arguments`: those of the logits' shape, the logits first.
template <typename Body>
void plan_cross_entropy(CudaCall& call, std::int64_t columns, double cap,
                        std::initializer_list<std::uint32_t> arguments, Body&& body) {
  if (columns > 0x7FFFFFFF - 1024 * 8)
    throw Error("a vocabulary of more than 2^31 tokens is beyond the cuda backend");
  call.constant("vocabulary", columns);
  call.constant("capped", cap > 0);
  call.constant("cap", cap);
  dispatch_rows(call, *arguments.begin(), columns, arguments, [&]<typename T, int N>() {
    std::uint32_t threads = 32;
    while (threads < 512 && threads * 2 * N <= columns) threads *= 2;
    call.constant("block_threads", static_cast<int>(threads));
    body.template operator()<T, N>(threads);
  });
}

// The same for kernels that keep a row in registers: body.template operator()<T, N, K>(threads), with K
// slices of N elements per thread, 16 elements where the row allows; 0 where it has more than 32.
template <typename Body>
void plan_cross_entropy_both(CudaCall& call, std::int64_t columns, double cap,
                             std::initializer_list<std::uint32_t> arguments, Body&& body) {
  plan_cross_entropy(call, columns, cap, arguments, [&]<typename T, int N>(std::uint32_t threads) {
    const std::int64_t slices = (columns + threads * N - 1) / (threads * N);
    const auto with = [&]<int K>() { body.template operator()<T, N, K>(threads); };
    if (slices <= 1) return with.template operator()<1>();
    if (slices <= 2) return with.template operator()<2>();
    if (slices <= 4) return with.template operator()<4>();
    if (slices * N <= 32) return with.template operator()<32 / N>();
    return with.template operator()<0>();
  });
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
