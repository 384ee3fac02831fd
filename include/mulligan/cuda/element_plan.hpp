// Host side of elements.cuh.
#pragma once

#include <mulligan/cuda/elements.cuh>
#include <mulligan/cuda_kernel.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

struct ElementPlan {
  std::int64_t count;
  int pack;  // elements per thread
  static constexpr std::uint32_t kThreads = 256;

  std::array<std::int64_t, 3> grid() const {
    const std::int64_t per_block = static_cast<std::int64_t>(kThreads) * pack;
    return {(count + per_block - 1) / per_block, 1, 1};
  }
  std::array<std::uint32_t, 3> block() const { return {kThreads, 1, 1}; }
};

// Calls body.template operator()<N>(plan). `arguments`: the tensors, all of one shape; Types: their dtypes. N
// is what fills 16 bytes of the narrowest, or 1 where extent or addresses do not allow that.
template <typename... Types, typename Body>
void dispatch_elements(const CudaCall& call, std::initializer_list<std::uint32_t> arguments, Body&& body) {
  constexpr int kMost = std::max({kPack<Types>...});
  const std::int64_t count = call.size(*arguments.begin());
  if (call.allows_packs(count, kMost, arguments)) {
    body.template operator()<kMost>(ElementPlan{count, kMost});
  } else {
    body.template operator()<1>(ElementPlan{count, 1});
  }
}

// The same as body.template operator()<T, N>(plan): T the compute dtype of the first argument. More: further dtypes.
template <typename... More, typename Body>
void dispatch_compute_elements(const CudaCall& call, std::initializer_list<std::uint32_t> arguments,
                               Body&& body) {
  dispatch_cuda(call.dtype(*arguments.begin()), [&]<typename T>() {
    dispatch_elements<T, More...>(
        call, arguments, [&]<int N>(const ElementPlan& plan) { body.template operator()<T, N>(plan); });
  });
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
