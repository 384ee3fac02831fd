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

}  // namespace mulligan::sdk

#pragma GCC visibility pop
